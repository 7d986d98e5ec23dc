import NIOCore

/// Hands an HTTP/1.1 connection its raw bytes and what becomes of the transport.
final class HTTPClientWireHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let connection: HTTPClientConnection

    init(connection: HTTPClientConnection) {
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.connection.attach(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.connection.transportClosed()
        self.connection.detach()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.connection.transportClosed()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.connection.receive(self.unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.connection.readCompleted()
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.connection.transportFailed(error)
    }
}
