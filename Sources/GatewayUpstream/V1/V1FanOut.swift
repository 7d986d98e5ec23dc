import FCMModel
import Synchronization

/// The calls of one message to a list: which is next, and what the earlier ones came to.
final class V1FanOut: Sendable {
    private struct State {
        var next = 0
        var readings: [V1Reading?]
        /// An answer that every further call would get as well.
        var verdict: V1Reading?
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
    func finish(_ index: Int, _ reading: V1Reading) {
        self.state.withLock { state in
            state.readings[index] = reading
            if reading.signal.holdsForAll, state.verdict == nil { state.verdict = reading }
        }
    }

    /// What the calls came to, in their order; those that were not made share the verdict.
    func readings() -> [V1Reading] {
        let (readings, verdict) = self.state.withLock { ($0.readings, $0.verdict) }
        let unmade = verdict ?? .notStarted
        return readings.map { $0 ?? unmade }
    }
}

extension V1Reading.Signal {
    /// Whether the answer is about the credential or the project, hence the same for every recipient.
    fileprivate var holdsForAll: Bool {
        switch self {
        case .tokenRefused, .credentialRefused, .projectQuota: true
        case .none, .targetQuota, .trouble: false
        }
    }
}
