import NIOCore
import Synchronization

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

    /// Where the requests come from.
    let origin: RequestOrigin

    /// Creates the handler of an HTTP/1.1 connection or an HTTP/2 stream.
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
