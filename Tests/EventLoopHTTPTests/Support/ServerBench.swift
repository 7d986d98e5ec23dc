import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded

@testable import EventLoopHTTP

/// A server on an embedded event loop, with connections that the test feeds.
struct ServerBench {
    let eventLoop: EmbeddedEventLoop
    let server: HTTPServer
    let loop: HTTPServerLoop

    init(
        _ responder: any HTTPServerResponder = ClosureResponder { _ in HTTPServerResponse(status: .ok) },
        configure: (inout HTTPServerConfiguration) -> Void = { _ in }
    ) {
        var configuration = HTTPServerConfiguration()
        configure(&configuration)
        self.eventLoop = EmbeddedEventLoop()
        self.server = HTTPServer(
            configuration: configuration,
            responder: responder,
            eventLoopGroup: self.eventLoop,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        self.loop =
            self.server.loops.values.first ?? HTTPServerLoop(eventLoop: self.eventLoop, configuration: configuration)
    }

    /// Opens a connection, with handlers between the channel and the server's.
    func connect(_ handlers: any ChannelHandler...) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: self.eventLoop)
        let connection = HTTPServerConnection(
            server: self.server,
            loop: self.loop,
            info: HTTPServerRequest.ConnectionInfo(remoteAddress: nil, isTLS: false, eventLoop: self.eventLoop)
        )
        for handler in handlers { try channel.pipeline.syncOperations.addHandler(handler) }
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        self.loop.add(connection)
        return channel
    }
}

extension EmbeddedChannel {
    /// Delivers text to the server and runs the loop.
    func send(_ text: String) throws {
        try self.writeInbound(ByteBuffer(string: text))
        self.embeddedEventLoop.run()
    }

    /// Returns the statuses of the responses written since the last call.
    func answers() throws -> [Int] {
        var text = ""
        while let bytes = try self.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return RawResponse.parse(text).map(\.status)
    }
}

/// Simulates a slow peer: written bytes wait here and count as buffered in the channel.
final class SlowReaderHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var context: ChannelHandlerContext?
    private var unread = 0
    private var promises: [EventLoopPromise<Void>] = []

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        for promise in self.promises {
            promise.fail(ChannelError.ioOnClosedChannel)
        }
        self.promises = []
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.unread += self.unwrapOutboundIn(data).readableBytes
        if let promise {
            self.promises.append(promise)
        }
    }

    func flush(context: ChannelHandlerContext) {
        self.show()
    }

    /// Reads bytes as the peer.
    func read(_ count: Int) {
        self.unread -= count
        self.show()
    }

    /// Makes the channel buffer as many bytes as are unread.
    private func show() {
        guard let context = self.context else { return }
        context.flush()
        context.write(NIOAny(ByteBuffer(repeating: 0, count: self.unread)), promise: nil)
    }
}
