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

/// A request's connection and, with HTTP/2, its stream; faults on the wire act on them.
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

    /// Declares the request as not processed: refuses its stream, or resets an HTTP/1.1 connection.
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

/// Knows the origin of a connection's or stream's requests, and detects at any time that the client has gone.
///
/// Hummingbird allows half-closed connections, so a client that closed its socket appears as the end of input, not as a
/// closed channel. A cancelled stream appears as a closed channel.
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

    /// Sets the action for when the client leaves; runs it at once if the client has already left.
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
/// A socket with a linger time of zero discards unsent bytes and sends RST on close. The handler precedes all others,
/// because TLS would send its own close first, and the peer would see it.
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
