import NIOCore
import NIOHTTP2
import Synchronization

/// What an HTTP/2 peer has seen.
final class HTTP2PeerRecord: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var requests: [HTTP2Peer.Request] = []
        var held: [HTTP2Peer.Request] = []
        var resets: [HTTP2ErrorCode] = []
        var mostStreams = 0
        var excesses = 0
    }

    let accepted = EventCounter()
    let requested = EventCounter()
    let closed = EventCounter()
    let reset = EventCounter()
    /// Settings that were acknowledged, with the first.
    let acknowledged = EventCounter()
    /// Pings.
    let pinged = EventCounter()
    private let state = Mutex(State())

    /// The complete requests, in order.
    var requests: [HTTP2Peer.Request] { self.state.withLock { $0.requests } }
    /// The codes of the streams the client has reset.
    var resets: [HTTP2ErrorCode] { self.state.withLock { $0.resets } }
    /// The most streams a connection ever had.
    var mostStreams: Int { self.state.withLock { $0.mostStreams } }
    /// How often a stream was opened beyond an acknowledged limit.
    var excesses: Int { self.state.withLock { $0.excesses } }
    var allChannels: [any Channel] { self.state.withLock { $0.channels } }

    func add(_ channel: any Channel) -> Int {
        self.accepted.increment()
        return self.state.withLock {
            $0.channels.append(channel)
            return $0.channels.count
        }
    }

    func channel(_ number: Int) -> any Channel {
        self.state.withLock { $0.channels[number - 1] }
    }

    func add(_ request: HTTP2Peer.Request) {
        self.state.withLock { $0.requests.append(request) }
    }

    func hold(_ request: HTTP2Peer.Request) {
        self.state.withLock { $0.held.append(request) }
    }

    func takeHeld() -> [HTTP2Peer.Request] {
        self.state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
    }

    func add(_ code: HTTP2ErrorCode) {
        self.state.withLock { $0.resets.append(code) }
        self.reset.increment()
    }

    func count(streams: Int, limit: Int) {
        self.state.withLock {
            $0.mostStreams = max($0.mostStreams, streams)
            $0.excesses += streams > limit ? 1 : 0
        }
    }
}
