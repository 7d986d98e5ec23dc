import NIOCore
import NIOPosix
import Synchronization

/// A peer that answers 413 to the first bytes of a request and reads no further.
final class EarlyServer: Sendable {
    private let listener: any Channel
    private let record: EarlyServerRecord

    var closed: EventCounter { self.record.closed }
    var port: Int { self.listener.localAddress?.port ?? 0 }

    private init(listener: any Channel, record: EarlyServerRecord) {
        self.listener = listener
        self.record = record
    }

    static func start() async throws -> EarlyServer {
        let record = EarlyServerRecord()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                record.channels.withLock { $0.append(channel) }
                channel.closeFuture.whenComplete { _ in record.closed.increment() }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(EarlyHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return EarlyServer(listener: listener, record: record)
    }

    /// Reads on, without which the end of a connection stays behind the bytes before it.
    func readOn() async throws {
        for channel in self.record.channels.withLock({ $0 }) {
            try await channel.setOption(.autoRead, value: true).get()
        }
    }

    func stop() async {
        try? await self.listener.close()
    }
}

private final class EarlyServerRecord: Sendable {
    let channels = Mutex<[any Channel]>([])
    let closed = EventCounter()
}

private final class EarlyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelActive(context: ChannelHandlerContext) {
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
        context.writeAndFlush(NIOAny(ByteBuffer(string: answer)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
