import Synchronization

/// The calls that a list becomes: which is next, and what the earlier ones came to.
final class FanOut<Reading: Sendable>: Sendable {
    private struct State {
        var next = 0
        var readings: [Reading?]
        /// An answer that every further call would get as well.
        var verdict: Reading?
    }

    private let state: Mutex<State>
    private let notStarted: Reading

    /// Calls none of which has been made.
    ///
    /// - Parameters:
    ///   - count: how many.
    ///   - notStarted: what a call comes to whose time was up before it was made.
    init(count: Int, notStarted: Reading) {
        self.state = Mutex(State(readings: Array(repeating: nil, count: count)))
        self.notStarted = notStarted
    }

    /// Takes the next call; `nil` when none is left or is worth making.
    func next() -> Int? {
        self.state.withLock { state in
            guard state.next < state.readings.count, state.verdict == nil else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Notes what a call came to, and whether every further one would come to the same.
    func finish(_ index: Int, _ reading: Reading, holdsForAll: Bool) {
        self.state.withLock { state in
            state.readings[index] = reading
            if holdsForAll, state.verdict == nil { state.verdict = reading }
        }
    }

    /// What the calls came to, in their order; those that were not made share the verdict.
    func readings() -> [Reading] {
        let (readings, verdict) = self.state.withLock { ($0.readings, $0.verdict) }
        let unmade = verdict ?? self.notStarted
        return readings.map { $0 ?? unmade }
    }
}
