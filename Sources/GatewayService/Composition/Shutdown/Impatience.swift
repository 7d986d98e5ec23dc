import Synchronization

/// Whether whoever stops the gateway would rather not wait any longer.
final class Impatience: Sendable {
    private struct State {
        var isDeclared = false
        var listeners: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())

    /// Says that nobody wants to wait.
    func declare() {
        let listeners = self.state.withLock { state in
            state.isDeclared = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners {
            listener.yield()
            listener.finish()
        }
    }

    /// Returns once nobody wants to wait, or when the task is cancelled.
    ///
    /// - Returns: whether nobody wants to wait.
    func isDeclared() async -> Bool {
        let (stream, listener) = AsyncStream.makeStream(of: Void.self)
        let isDeclared = self.state.withLock { state in
            if !state.isDeclared { state.listeners.append(listener) }
            return state.isDeclared
        }
        if isDeclared { return true }
        for await _ in stream { return true }
        return false
    }
}
