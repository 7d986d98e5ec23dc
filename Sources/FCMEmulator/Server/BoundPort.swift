import Synchronization

/// Returns the port that the emulator listens on, as soon as it is bound.
final class BoundPort: Sendable {
    private typealias Waiter = CheckedContinuation<Int, any Error>

    private struct State {
        var outcome: Result<Int, any Error>?
        var waiters: [Int: Waiter] = [:]
        var lastWaiter = 0
    }

    private let state = Mutex(State())

    func value() async throws -> Int {
        let id = self.state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                self.wait(id, waiter)
            }
        } onCancel: {
            self.state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }

    func succeed(_ port: Int) {
        self.settle(.success(port))
    }

    /// Reports that there will be none; ignored if there is one.
    func fail(_ error: any Error) {
        self.settle(.failure(error))
    }

    private func wait(_ id: Int, _ waiter: Waiter) {
        let outcome: Result<Int, any Error>? = self.state.withLock { state in
            if let outcome = state.outcome { return outcome }
            // The cancellation handler may have run before the waiter was added.
            if Task.isCancelled { return .failure(CancellationError()) }
            state.waiters[id] = waiter
            return nil
        }
        if let outcome { waiter.resume(with: outcome) }
    }

    private func settle(_ outcome: Result<Int, any Error>) {
        let waiters = self.state.withLock { state in
            guard state.outcome == nil else { return [Int: Waiter]() }
            state.outcome = outcome
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values {
            waiter.resume(with: outcome)
        }
    }
}

extension Clock where Duration == Swift.Duration {
    /// Waits until the time is over or the hold ends.
    @discardableResult
    func pause(for duration: Duration, unless end: AsyncStream<Void>) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    try await self.sleep(for: duration)
                    return true
                } catch {
                    return false
                }
            }
            group.addTask {
                for await _ in end {}
                return false
            }
            let isOver = await group.next() ?? false
            group.cancelAll()
            return isOver
        }
    }
}
