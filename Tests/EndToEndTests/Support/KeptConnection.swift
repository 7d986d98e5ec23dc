import NIOCore
import NIOPosix

/// A connection that a test keeps open and speaks HTTP over, one request after another.
struct KeptConnection: Sendable {
    private let channel: any Channel
    private let received: AsyncStream<ByteBuffer>

    /// The server closed the connection.
    struct Closed: Error {}

    /// Runs a body with a connection, which is closed behind it.
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

    /// Sends a request and reads its answer.
    ///
    /// - Throws: ``Closed``.
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
            ByteBuffer(string: "\(method) \(path) HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\(body)")
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
