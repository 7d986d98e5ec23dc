import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Closes a connection so that its peer sees a reset instead of an orderly end.
///
/// A socket that must not linger discards what is unsent and sends RST on close. The handler stands in front of all
/// others: TLS would say goodbye first, and the peer would see that.
final class SocketReset: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = ByteBuffer

    /// Asks for the reset, as an outbound event.
    struct Event: Sendable {}

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is Event else { return context.triggerUserOutboundEvent(event, promise: promise) }
        guard let socket = context.channel as? any SocketOptionProvider else { return context.close(promise: promise) }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).assumeIsolated()
            .whenComplete { _ in context.close(promise: promise) }
    }
}
