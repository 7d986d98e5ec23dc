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

    /// What the client offers in the TLS handshake.
    var protocols: [String] = []

    /// Sends a request in one piece, and reads until the connection ends.
    ///
    /// - Parameters:
    ///   - request: what is sent.
    ///   - whenSent: called once that has left.
    /// - Returns: what came.
    /// - Throws: what keeps the connection from being made.
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

    /// Sends a message as JSON with a key that is known.
    func send(_ json: String) async throws -> RawReply {
        try await self.exchange(Self.request("POST", "/fcm/send", json: json))
    }

    /// Sends a v1 message with an access token.
    func send(message: String, project: String = "demo", token: String) async throws -> RawReply {
        let headers = ["Authorization: Bearer \(token)", "Content-Type: application/json", "Connection: close"]
        let path = "/v1/projects/\(project)/messages:send"
        return try await self.exchange(Self.request("POST", path, headers: headers, body: message))
    }

    /// Asks for an access token with a form.
    func token(form: String) async throws -> RawReply {
        let headers = ["Content-Type: application/x-www-form-urlencoded", "Connection: close"]
        return try await self.exchange(Self.request("POST", "/token", headers: headers, body: form))
    }

    /// Asks the control interface.
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
