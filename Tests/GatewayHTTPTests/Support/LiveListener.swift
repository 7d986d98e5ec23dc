import EventLoopHTTP
import GatewayHTTP
import Logging
import NIOCore
import NIOPosix
import Testing

/// The data listener of a test's gateway behind a real socket.
struct LiveListener {
    /// Where it listens.
    let port: Int

    /// Runs a gateway's data listener for the length of a test, with its bounds on sizes and with all the time it needs.
    static func run<Result: Sendable>(
        _ gateway: TestGateway,
        _ body: (LiveListener) async throws -> Result
    ) async throws -> Result {
        var configuration = HTTPServerConfiguration()
        configuration.bodyLimit = gateway.dataListener.bodyLimit(of:)
        configuration.headTimeout = .seconds(600)
        configuration.bodyTimeout = .seconds(600)
        configuration.writeStallTimeout = .seconds(600)
        let server = HTTPServer(
            configuration: configuration,
            responder: gateway.dataListener,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try await server.start()
        do {
            let result = try await body(LiveListener(port: server.port ?? 0))
            await server.shutdown(grace: .zero)
            return result
        } catch {
            await server.shutdown(grace: .zero)
            throw error
        }
    }

    /// Sends a request on a connection of its own and reads the answer off the wire.
    func ask(_ method: String, _ path: String, headers: [String: String], body: [UInt8]) async throws -> WireAnswer {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        head += "Content-Length: \(body.count)\r\n\r\n"
        let bytes = ByteBuffer(bytes: Array(head.utf8) + body)
        let inbox = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: ByteBuffer.self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(WireInbox(promise: inbox))
                }
            }
            .connect(host: "127.0.0.1", port: self.port)
            .get()
        try await channel.writeAndFlush(bytes)
        return try WireAnswer(parsing: String(buffer: try await inbox.futureResult.get()))
    }
}

/// Gathers what a peer sends until it closes.
private final class WireInbox: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let promise: EventLoopPromise<ByteBuffer>
    private var gathered = ByteBuffer()

    init(promise: EventLoopPromise<ByteBuffer>) {
        self.promise = promise
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.gathered.writeImmutableBuffer(self.unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.promise.succeed(self.gathered)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.promise.fail(error)
        context.close(promise: nil)
    }
}

/// An answer read off the wire without the gateway's own parser.
struct WireAnswer: Sendable {
    var status: Int
    /// The fields by their names in lower case.
    var fields: [String: String]
    var body: String

    init(parsing text: String) throws {
        let bytes = Array(text.utf8)
        let headEnd = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
        let lines = String(decoding: bytes[..<headEnd.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = try #require(lines.first).split(separator: " ")
        self.status = try #require(words.count > 1 ? Int(words[1]) : nil)
        self.fields = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            self.fields[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        self.body = String(decoding: bytes[headEnd.upperBound...], as: UTF8.self)
    }
}
