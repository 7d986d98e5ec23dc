import FCMEmulator
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// Talks to a port byte by byte.
struct RawClient: Sendable {
    let port: Int

    /// The certificate to trust; nil for no TLS.
    var certificate: EmulatorCertificate?

    /// The protocols offered in the TLS handshake.
    var protocols: [String] = []

    /// Sends a request in one piece, and reads until the connection ends.
    func exchange(_ request: String, whenSent: @Sendable () -> Void = {}) async throws -> RawReply {
        try await self.withConnection(sending: request) { inbound in
            whenSent()
            var text = ""
            do {
                for try await part in inbound { text += String(buffer: part) }
                return RawReply(text: text, end: .closed)
            } catch let error as IOError where error.errnoCode == ECONNRESET {
                return RawReply(text: text, end: .reset)
            }
        }
    }

    /// Sends a request, runs the closure and closes the connection.
    func withConnection<Result: Sendable>(
        sending request: String,
        _ body: @Sendable (NIOAsyncChannelInboundStream<ByteBuffer>) async throws -> Result
    ) async throws -> Result {
        let tls = try self.certificate.map { try ClientTLS.context(trusting: $0, protocols: self.protocols) }
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: self.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let handler = try NIOSSLClientHandler(context: tls, serverHostname: "localhost")
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: request))
            return try await body(inbound)
        }
    }

    /// Sends a request with these header lines on a connection of its own.
    func ask(_ method: String, _ path: String, _ headers: [String], body: String = "") async throws -> RawReply {
        try await self.exchange(Self.request(method, path, headers: headers + ["Connection: close"], body: body))
    }

    /// Sends a JSON message with a known server key.
    func send(_ json: String) async throws -> RawReply {
        try await self.exchange(Self.request("POST", "/fcm/send", json: json))
    }

    /// Sends a v1 message with an access token.
    func send(message: String, project: String = "demo", token: String) async throws -> RawReply {
        let headers = ["Authorization: Bearer \(token)", "Content-Type: application/json"]
        return try await self.ask("POST", "/v1/projects/\(project)/messages:send", headers, body: message)
    }

    /// Requests an access token.
    func token(form: String) async throws -> RawReply {
        try await self.ask("POST", "/token", ["Content-Type: application/x-www-form-urlencoded"], body: form)
    }

    /// Sends a request to the control interface.
    func control(_ method: String, _ path: String, _ json: String = "") async throws -> RawReply {
        try await self.exchange(Self.request(method, "/_emulator/" + path, json: json))
    }

    /// The text of a request after which the connection closes.
    static func request(
        _ method: String,
        _ path: String,
        json: String,
        key: String = "AAAA-known",
        connection: String = "close"
    ) -> String {
        self.request(
            method,
            path,
            headers: [
                "Authorization: key=\(key)", "Content-Type: application/json", "Connection: \(connection)",
            ],
            body: json
        )
    }

    /// The text of a request with these header lines.
    static func request(_ method: String, _ path: String, headers: [String], body: String) -> String {
        let lines = ["\(method) \(path) HTTP/1.1", "Host: localhost"] + headers
        return lines.joined(separator: "\r\n") + "\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
    }
}

/// The bytes received on a connection, up to its end.
struct RawReply: Sendable {
    enum End: Sendable {
        /// The peer closed the connection.
        case closed
        /// The peer reset the connection.
        case reset
    }

    let text: String
    let end: End

    /// The status of the first response.
    var status: Int? {
        let words = self.text.prefix { $0 != "\r\n" }.split(separator: " ")
        return words.count > 1 ? Int(words[1]) : nil
    }

    /// The text after the first head.
    var body: String {
        guard let range = self.text.firstRange(of: "\r\n\r\n") else { return "" }
        return String(self.text[range.upperBound...])
    }

    /// Returns a header field of the first response by its lowercase name.
    func header(_ name: String) -> String? {
        let head = self.text.firstRange(of: "\r\n\r\n").map { self.text[..<$0.lowerBound] } ?? self.text[...]
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == name {
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }

    func json() throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(self.body.utf8)) as? [String: Any] ?? [:]
    }
}

/// The TLS configuration of the emulator's clients.
enum ClientTLS {
    /// Trusts the emulator's certificate only.
    static func context(trusting certificate: EmulatorCertificate, protocols: [String]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(certificate.certificateChain.utf8))
        )
        configuration.applicationProtocols = protocols
        return try NIOSSLContext(configuration: configuration)
    }
}
