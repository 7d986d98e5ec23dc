import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded

@testable import EventLoopHTTP

/// A server on an embedded event loop, and connections to it that are fed by hand.
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
            info: HTTPConnectionInfo(remoteAddress: nil, isTLS: false, eventLoop: self.eventLoop)
        )
        for handler in handlers { try channel.pipeline.syncOperations.addHandler(handler) }
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        self.loop.add(connection)
        return channel
    }
}

extension EmbeddedChannel {
    /// The statuses of the answers written since the last look.
    func answers() throws -> [Int] {
        var text = ""
        while let bytes = try self.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return RawResponse.parse(text).map(\.status)
    }
}
