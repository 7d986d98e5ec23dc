import Synchronization

/// State that one task changes while others wait for it, without a clock.
package final class Observed<State: Sendable>: Sendable {
    private struct Waiter {
        let isMet: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Contents {
        var state: State
        var waiters: [Int: Waiter] = [:]
        var nextNumber = 0
        var cancelled: Set<Int> = []
    }

    private let contents: Mutex<Contents>

    package init(_ state: State) {
        self.contents = Mutex(Contents(state: state))
    }

    package var current: State { self.contents.withLock { $0.state } }

    /// Reads or changes the state, then resumes the waiters whose condition it meets.
    package func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, woken) = self.contents.withLock { contents in
            let result = body(&contents.state)
            let met = contents.waiters.filter { $0.value.isMet(contents.state) }
            for number in met.keys { contents.waiters[number] = nil }
            return (result, met.values.map(\.continuation))
        }
        for continuation in woken { continuation.resume() }
        return result
    }

    /// Returns when the state meets a condition, at once if it does already.
    package func wait(until isMet: @escaping @Sendable (State) -> Bool) async throws {
        let number = self.contents.withLock { contents in
            contents.nextNumber += 1
            return contents.nextNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = self.contents.withLock { contents in
                    if contents.cancelled.remove(number) != nil || isMet(contents.state) { return true }
                    contents.waiters[number] = Waiter(isMet: isMet, continuation: continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = self.contents.withLock { contents in
                if contents.waiters[number] == nil { contents.cancelled.insert(number) }
                return contents.waiters.removeValue(forKey: number)
            }
            waiter?.continuation.resume()
        }
        if !self.contents.withLock({ isMet($0.state) }) { try Task.checkCancellation() }
    }
}
