import NIOCore
import NIOSSL
import NIOTLS

/// Hands the connection its raw bytes, and withholds reads while it has enough of them.
final class HTTPServerWireHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: HTTPServerConnection

    init(connection: HTTPServerConnection) {
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.connection.attach(context)
        if context.channel.isActive {
            self.connection.opened()
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.connection.closed()
        self.connection.detach()
    }

    func channelActive(context: ChannelHandlerContext) {
        self.connection.opened()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.connection.closed()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.connection.receive(self.unwrapInboundIn(data))
    }

    func read(context: ChannelHandlerContext) {
        if self.connection.mayRead() {
            context.read()
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.handshakeCompleted) = event as? TLSUserEvent {
            self.connection.secured(by: try? context.pipeline.syncOperations.nioSSL_peerCertificate())
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.connection.transportFailed(error)
    }
}
