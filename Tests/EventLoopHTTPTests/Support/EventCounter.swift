import Synchronization

/// Counts events, and lets a test wait for them instead of for time.
final class EventCounter: Sendable {
    private struct State {
        var count = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var count: Int {
        self.state.withLock { $0.count }
    }

    func increment() {
        let due = self.state.withLock { state in
            state.count += 1
            let reached = state.count
            defer { state.waiters.removeAll { $0.count <= reached } }
            return state.waiters.filter { $0.count <= reached }.map(\.continuation)
        }
        for continuation in due {
            continuation.resume()
        }
    }

    func wait(for count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isReached = self.state.withLock { state in
                guard state.count < count else { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isReached {
                continuation.resume()
            }
        }
    }
}
