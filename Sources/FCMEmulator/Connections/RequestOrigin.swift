import NIOCore
import NIOHTTP2
import NIOHTTPTypesHTTP2
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The connection a request came by, and its stream if that is HTTP/2; what faults on the wire act upon.
struct RequestOrigin: Sendable {
    /// One request's part of an HTTP/2 connection.
    struct Stream: Sendable {
        let id: HTTP2StreamID
        let channel: any Channel
    }

    let connectionID: Int
    let connection: any Channel
    /// The stream; nil with HTTP/1.1.
    let stream: Stream?

    /// The stream's number on its connection; nil with HTTP/1.1.
    var streamID: Int? { self.stream.map { Int($0.id) } }

    func reset() async {
        try? await self.connection.triggerUserOutboundEvent(SocketReset.Event()).get()
    }

    /// Declares the request as not processed: its stream is refused, or an HTTP/1.1 connection is reset.
    func refuse() async {
        guard let stream = self.stream else { return await self.reset() }
        let refusal = NIOHTTP2FramePayloadToHTTPEvent.reset(code: .refusedStream)
        try? await stream.channel.triggerUserOutboundEvent(refusal).get()
    }

    func goAway(refusing isRefused: Bool) async {
        if let stream = self.stream {
            let command = ConnectionCommand.goAway(refusing: isRefused ? stream.id : nil)
            try? await self.connection.triggerUserOutboundEvent(command).get()
        } else if isRefused {
            await self.reset()
        } else {
            self.connection.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }
}

/// Knows where the requests of a connection or stream come from, and notices when their client goes away, also while a
/// request is being handled.
///
/// Hummingbird allows half-closed connections, so a client that closed its socket shows up as the end of input, not as a
/// closed channel. A stream that was cancelled is a closed channel.
final class PeerWatch: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private struct State {
        var isGone = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    let origin: RequestOrigin

    init(origin: RequestOrigin) {
        self.origin = origin
    }

    var isGone: Bool { self.state.withLock { $0.isGone } }

    /// Sets what runs when the client goes away; at once if it has gone already.
    func onDeparture(_ action: @escaping @Sendable () -> Void) {
        let isGone = self.state.withLock { state in
            if !state.isGone { state.action = action }
            return state.isGone
        }
        if isGone { action() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.depart()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent {
            self.depart()
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func depart() {
        let action = self.state.withLock { state in
            state.isGone = true
            defer { state.action = nil }
            return state.action
        }
        action?()
    }
}

/// Closes a connection so that its peer sees a reset instead of an orderly end.
///
/// A socket that must not linger discards what is unsent and sends RST on close. The handler stands in front of all
/// others: TLS would say goodbye first, and the peer would see that.
final class SocketReset: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = ByteBuffer

    struct Event: Sendable {}

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is Event else { return context.triggerUserOutboundEvent(event, promise: promise) }
        guard let socket = context.channel as? any SocketOptionProvider else { return context.close(promise: promise) }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).assumeIsolated()
            .whenComplete { _ in context.close(promise: promise) }
    }
}
