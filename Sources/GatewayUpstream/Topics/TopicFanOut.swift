import FCMModel
import Synchronization

/// The calls of one change of many devices' subscriptions: which is next, and what the earlier ones came to.
final class TopicFanOut: Sendable {
    private struct State {
        var next = 0
        var readings: [TopicReading?]
        /// An answer that every further call would get as well.
        var verdict: TopicReading?
        /// Whether the API is known to be there.
        var isServed = false
    }

    private let state: Mutex<State>

    init(count: Int) {
        self.state = Mutex(State(readings: Array(repeating: nil, count: count)))
    }

    /// Takes the next call; `nil` when none is left or is worth making.
    func next() -> Int? {
        self.state.withLock { state in
            guard state.next < state.readings.count, state.verdict == nil else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Notes what a call came to.
    func finish(_ index: Int, _ reading: TopicReading) {
        self.state.withLock { state in
            state.readings[index] = reading
            switch reading.signal {
            case .none:
                if case .changed = reading.answer { state.isServed = true }
            case .apiMissing:
                // Once another device was served, this is about the one device.
                if !state.isServed { state.verdict = state.verdict ?? reading }
            case .tokenRefused, .holdsForAll:
                state.verdict = state.verdict ?? reading
            }
        }
    }

    /// What the calls came to, in their order; those that were not made share the verdict.
    func readings() -> [TopicReading] {
        let (readings, verdict) = self.state.withLock { ($0.readings, $0.verdict) }
        let unmade = verdict ?? .notStarted
        return readings.map { $0 ?? unmade }
    }
}
