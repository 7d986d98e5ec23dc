import Synchronization

/// A lock for each key, held by one task at a time in the order of arrival.
package final class KeyedLock<Key: Hashable & Sendable>: Sendable {
    private struct State {
        var taken: Set<Key> = []
        var waiters: [Key: [(number: Int, continuation: CheckedContinuation<Bool, Never>)]] = [:]
        /// Numbers of tasks that neither wait nor have given up yet.
        var pending: Set<Int> = []
        var lastNumber = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Waits for a key's lock until a deadline or the task's cancellation. Returns true if the lock is held, and then
    /// ``release(_:)`` must follow.
    package func acquire(_ key: Key, until deadline: Uptime) async -> Bool {
        let number = self.state.withLock { state -> Int? in
            if state.taken.insert(key).inserted { return nil }
            state.lastNumber += 1
            state.pending.insert(state.lastNumber)
            return state.lastNumber
        }
        guard let number else { return true }
        return await withTaskGroup(of: Bool?.self) { group in
            group.addTask { await self.turn(of: number, for: key) }
            group.addTask {
                try? await Task.sleep(until: deadline)
                self.giveUp(number, for: key)
                return nil
            }
            defer { group.cancelAll() }
            for await hasTurn in group {
                if let hasTurn { return hasTurn }
            }
            return false
        }
    }

    /// Gives a lock to the next waiting task.
    package func release(_ key: Key) {
        let next = self.state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard var waiters = state.waiters[key], !waiters.isEmpty else {
                state.taken.remove(key)
                return nil
            }
            let next = waiters.removeFirst()
            state.waiters[key] = waiters.isEmpty ? nil : waiters
            return next.continuation
        }
        next?.resume(returning: true)
    }

    private func turn(of number: Int, for key: Key) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer = self.state.withLock { state -> Bool? in
                guard state.pending.remove(number) != nil else { return false }
                if state.taken.insert(key).inserted { return true }
                state.waiters[key, default: []].append((number, continuation))
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    private func giveUp(_ number: Int, for key: Key) {
        let waiter = self.state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard state.pending.remove(number) == nil,
                let index = state.waiters[key]?.firstIndex(where: { $0.number == number })
            else { return nil }
            let waiter = state.waiters[key]?.remove(at: index)
            if state.waiters[key]?.isEmpty == true { state.waiters[key] = nil }
            return waiter?.continuation
        }
        waiter?.resume(returning: false)
    }
}
