import Foundation
import NIOCore
import NIOPosix

/// A connection that sends exactly a test's bytes and reads until the server closes it.
enum RawExchange {
    /// Sends bytes and reads until the connection closes or is reset.
    static func text(port: Int, sending bytes: String) async throws -> String {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
        return String(decoding: try await self.bytes(to: address, sending: Array(bytes.utf8)), as: UTF8.self)
    }

    /// The same with bytes, to any address.
    static func bytes(to address: SocketAddress, sending bytes: [UInt8]) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        var received: [UInt8] = []
        do {
            try await channel.executeThenClose { inbound, outbound in
                // A server that refuses early may not read everything.
                try? await outbound.write(ByteBuffer(bytes: bytes))
                for try await part in inbound { received += part.readableBytesView }
            }
        } catch is IOError {
            // A reset ends a connection as well.
        }
        return received
    }

    /// The same, parsed as one answer.
    static func reply(port: Int, sending bytes: String) async throws -> Reply {
        let text = try await self.text(port: port, sending: bytes)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = (parts.first ?? "").split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let field = line.split(separator: ":", maxSplits: 1)
            if field.count == 2 { headers[field[0].lowercased()] = field[1].trimmingCharacters(in: .whitespaces) }
        }
        return Reply(
            status: words.count > 1 ? Int(words[1]) ?? 0 : 0,
            headers: headers,
            body: Data((parts.count > 1 ? parts[1] : "").utf8)
        )
    }
}

/// An answer parsed from a connection's bytes.
struct WireAnswer: Equatable, Sendable {
    /// The status; 0 for bytes that aren't an HTTP/1 answer.
    let status: Int
    /// The id that the request sent; empty if the gateway made the id.
    let identifier: String

    /// Parses all final answers by their declared lengths.
    static func all(in bytes: [UInt8]) -> [WireAnswer] {
        var answers: [WireAnswer] = []
        var rest = bytes[...]
        let start = Array("HTTP/1.".utf8)
        while !rest.isEmpty {
            guard rest.starts(with: start), let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else {
                return answers + [WireAnswer(status: 0, identifier: "")]
            }
            var fields: [Substring: Substring] = [:]
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            for line in head.lowercased().split(separator: "\r\n").dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                fields[line[..<colon]] = line[line.index(after: colon)...].drop { $0 == " " }
            }
            let status = Int(head.dropFirst(9).prefix(3)) ?? 0
            if status >= 200 {
                let identifier = fields["x-request-id"] ?? ""
                // The gateway's ids are UUIDs, unlike the tests'.
                let isGiven = identifier.wholeMatch(of: #/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/#) != nil
                answers.append(WireAnswer(status: status, identifier: isGiven ? "" : String(identifier)))
            }
            rest = rest[end.upperBound...]
            // An answer to HEAD has a length and no body: the next answer follows at once.
            if !rest.starts(with: start) {
                rest = rest.dropFirst(fields["content-length"].flatMap { Int($0) } ?? 0)
            }
        }
        return answers
    }
}

/// An open connection for one HTTP request after another.
struct KeptConnection: Sendable {
    private let channel: any Channel
    private let received: AsyncStream<ByteBuffer>

    /// The server closed the connection.
    struct Closed: Error {}

    /// Runs a body with a connection, which is closed afterwards.
    static func with<Result>(port: Int, _ body: (KeptConnection) async throws -> Result) async throws -> Result {
        let (received, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ReceivingHandler(continuation: continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .get()
        defer { channel.close(promise: nil) }
        return try await body(KeptConnection(channel: channel, received: received))
    }

    /// Sends a request and reads its answer; throws ``Closed``.
    func answer(
        to method: String,
        _ path: String,
        fields: [String: String] = [:],
        body: String = ""
    ) async throws -> (status: Int, body: String) {
        let lines = fields.merging(["Content-Length": "\(body.utf8.count)"]) { $1 }
            .map { "\($0.key): \($0.value)\r\n" }
            .joined()
        try await self.channel.writeAndFlush(
            ByteBuffer(string: "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(lines)\r\n\(body)")
        )
        var text = ""
        for await part in self.received {
            text += String(buffer: part)
            guard let end = text.firstRange(of: "\r\n\r\n"),
                let length = text[..<end.lowerBound].firstMatch(of: #/(?i)content-length: (\d+)/#)
            else { continue }
            let content = text[end.upperBound...]
            guard content.utf8.count == Int(length.1) else { continue }
            return (Int(text.dropFirst(9).prefix(3)) ?? 0, String(content))
        }
        throw Closed()
    }
}

private final class ReceivingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let continuation: AsyncStream<ByteBuffer>.Continuation

    init(continuation: AsyncStream<ByteBuffer>.Continuation) {
        self.continuation = continuation
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.continuation.yield(self.unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.continuation.finish()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

/// A client that sends and never reads.
enum SlowReader {
    /// Connects with small buffers, so that a server's writes stall soon.
    static func connect(port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: false)
            .channelOption(.socketOption(.so_rcvbuf), value: 4_096)
            .channelOption(.tcpOption(.init(rawValue: TCP_MAXSEG)), value: 536)
            .connect(host: "127.0.0.1", port: port)
            .get()
    }
}
