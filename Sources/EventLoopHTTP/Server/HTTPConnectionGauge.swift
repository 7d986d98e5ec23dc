import Synchronization

/// Counts open connections and bounds them: those of a server, or those of pools that share descriptors.
///
/// Locked once when a connection opens and once when it closes, never for a request.
package final class HTTPConnectionGauge: Sendable {
    private struct State {
        var open = 0
        var isShut = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    enum Admission {
        case admitted
        case full
        case shut
    }

    private let limit: Int
    private let state = Mutex(State())

    /// Counts from nothing, up to a limit.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Connections open now.
    var open: Int {
        self.state.withLock { $0.open }
    }

    /// Counts a new connection, unless there is no room for it.
    ///
    /// - Parameter isInPlace: whether it has the place of one that has just been closed, which counts until its channel has
    ///   told so.
    /// - Returns: whether it is counted; if so, it has to leave.
    func admit(inPlace isInPlace: Bool = false) -> Admission {
        self.state.withLock { state in
            guard !state.isShut else { return .shut }
            guard isInPlace || state.open < self.limit else { return .full }
            state.open += 1
            return .admitted
        }
    }

    /// Counts a connection that was admitted and has closed.
    func leave() {
        let waiting = self.state.withLock { state in
            state.open -= 1
            guard state.open == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting {
            continuation.resume()
        }
    }

    /// Admits no connection any more.
    func shut() {
        self.state.withLock { $0.isShut = true }
    }

    /// Returns once no connection is open.
    func waitUntilEmpty() async {
        await withCheckedContinuation { continuation in
            let isEmpty = self.state.withLock { state in
                guard state.open > 0 else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isEmpty {
                continuation.resume()
            }
        }
    }
}
