import NIOCore
import NIOPosix

/// A TCP connection that sends exactly the bytes a test gives it.
final class RawConnection: Sendable {
    private let channel: any Channel
    private let inbox: RawInbox

    private init(channel: any Channel, inbox: RawInbox) {
        self.channel = channel
        self.inbox = inbox
    }

    /// Connects; the greeting is sent by the event loop, as soon as that learns that the connection is there.
    static func open(
        host: String = "127.0.0.1",
        port: Int,
        reads: Bool = true,
        greeting: String = ""
    ) async throws -> RawConnection {
        let inbox = RawInbox()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RawInboxHandler(inbox: inbox, greeting: greeting))
                }
            }
            .connect(host: host, port: port)
            .get()
        return RawConnection(channel: channel, inbox: inbox)
    }

    func send(_ text: String) async throws {
        try await self.send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes))
    }

    /// Sends what the peer may refuse to take in full.
    func offer(_ text: String) {
        self.offer(Array(text.utf8))
    }

    func offer(_ bytes: [UInt8]) {
        self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    func startReading() async throws {
        try await self.channel.setOption(.autoRead, value: true).get()
    }

    /// The first answers, or fewer if the peer closes before.
    func responses(_ count: Int) async -> [RawResponse] {
        RawResponse.parse(await self.inbox.text { RawResponse.parse($0).count >= count })
    }

    /// Everything the peer sends until it closes.
    func textUntilClosed() async -> String {
        await self.inbox.text { _ in false }
    }

    func text(containing part: String) async -> String {
        await self.inbox.text { $0.contains(part) }
    }

    func close() async {
        try? await self.channel.close()
    }
}

private final class RawInboxHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let inbox: RawInbox
    private let greeting: String

    init(inbox: RawInbox, greeting: String) {
        self.inbox = inbox
        self.greeting = greeting
    }

    func channelActive(context: ChannelHandlerContext) {
        guard !self.greeting.isEmpty else { return }
        context.writeAndFlush(NIOAny(ByteBuffer(string: self.greeting)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.inbox.append(self.unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.inbox.close()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
