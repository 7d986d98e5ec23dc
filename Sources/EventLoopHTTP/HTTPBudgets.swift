import Synchronization

/// Counts and bounds the bytes of incomplete messages: a server's requests, or the answers that pools collect.
///
/// It has no lock, because every request with a body uses it.
package final class HTTPBodyBudget: Sendable {
    let limit: Int
    private let held = Atomic(0)

    package init(limit: Int) {
        self.limit = limit
    }

    var heldBytes: Int { self.held.load(ordering: .relaxed) }

    func hasRoom(for byteCount: Int) -> Bool {
        byteCount <= self.limit - self.heldBytes
    }

    /// Counts bytes that have arrived. Returns false, and counts nothing, if they exceed the limit.
    func hold(_ byteCount: Int) -> Bool {
        guard self.held.add(byteCount, ordering: .relaxed).newValue <= self.limit else {
            self.release(byteCount)
            return false
        }
        return true
    }

    func release(_ byteCount: Int) {
        self.held.subtract(byteCount, ordering: .relaxed)
    }
}

/// Counts and bounds open connections: those of a server, or those of pools that share descriptors.
///
/// It takes its lock once when a connection opens and once when it closes, never for a request.
package final class HTTPConnectionBudget: Sendable {
    private struct State {
        var open = 0
        var isShut = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    enum Admission {
        /// Counted. The connection must call ``leave()``.
        case admitted
        case full
        case shut
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int) {
        self.limit = limit
    }

    var open: Int { self.state.withLock { $0.open } }

    /// Counts a new connection if there is room. A replacement is always admitted. The connection that made way for it
    /// still counts until its channel has ended.
    func admit(replacing isReplacement: Bool = false) -> Admission {
        self.state.withLock { state in
            guard !state.isShut else { return .shut }
            guard isReplacement || state.open < self.limit else { return .full }
            state.open += 1
            return .admitted
        }
    }

    func leave() {
        let waiting = self.state.withLock { state in
            state.open -= 1
            guard state.open == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func shut() {
        self.state.withLock { $0.isShut = true }
    }

    func waitUntilEmpty() async {
        await withCheckedContinuation { continuation in
            let isEmpty = self.state.withLock { state in
                guard state.open > 0 else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isEmpty { continuation.resume() }
        }
    }
}
