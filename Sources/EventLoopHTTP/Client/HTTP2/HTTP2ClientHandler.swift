import NIOCore
import NIOHTTP2

/// Hands an HTTP/2 connection its frames and what becomes of the transport.
///
/// Streams are no channels of their own: an exchange needs one write, a few frames back and no back-pressure of its
/// own, since answers are bounded. A dictionary of streams does that with two allocations for an exchange, where a
/// child channel costs a pipeline, several promises and a few dozen events.
final class HTTP2ClientHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    let connection: HTTP2ClientConnection

    init(connection: HTTP2ClientConnection) {
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

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case let event as NIOHTTP2WindowUpdatedEvent:
            if let bytes = event.inboundWindowSize {
                self.connection.windowChanged(of: event.streamID, to: bytes)
            }
        case let event as StreamClosedEvent:
            self.connection.streamClosed(event.streamID, event.reason)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.connection.failed(error)
    }
}
