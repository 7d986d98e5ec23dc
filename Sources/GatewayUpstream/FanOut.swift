import GatewayCore
import Synchronization

/// The calls that a list turns into: which is next, and what the earlier ones returned.
final class FanOut<Reading: Sendable>: Sendable {
    /// The recipients that a reading is about.
    enum Scope {
        /// This one call; the API is there.
        case served
        case one
        /// All later calls would get the same answer.
        case all
        /// As `all`, unless another call was served.
        case allUnlessServed
    }

    private struct State {
        var next = 0
        var readings: [Reading?]
        /// An answer that every later call would get as well.
        var verdict: Reading?
        var hasServed = false
    }

    private let state: Mutex<State>

    private init(count: Int) {
        self.state = Mutex(State(readings: Array(repeating: nil, count: count)))
    }

    /// Makes the calls of a list in order, with at most a given number in flight; calls not made share a verdict, or
    /// are `notStarted`. Without an executor, they run on the caller's.
    ///
    /// A few workers take one call after another, which costs less than a task per call.
    static func readings(
        count: Int,
        width: Int,
        until deadline: Uptime,
        notStarted: Reading,
        on executor: (any TaskExecutor)? = nil,
        _ make: @escaping @Sendable (Int) async -> (Reading, Scope)
    ) async -> [Reading] {
        let calls = FanOut(count: count)
        await withDiscardingTaskGroup { group in
            for _ in 0..<min(width, count) {
                group.addTask(executorPreference: executor) {
                    while !Task.isCancelled, Uptime.now < deadline, let index = calls.next() {
                        let (reading, scope) = await make(index)
                        calls.finish(index, reading, scope)
                    }
                }
            }
        }
        return calls.state.withLock { state in
            let unmade = state.verdict ?? notStarted
            return state.readings.map { $0 ?? unmade }
        }
    }

    private func next() -> Int? {
        self.state.withLock { state in
            guard state.next < state.readings.count, state.verdict == nil else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    private func finish(_ index: Int, _ reading: Reading, _ scope: Scope) {
        self.state.withLock { state in
            state.readings[index] = reading
            switch scope {
            case .one: break
            case .served: state.hasServed = true
            case .allUnlessServed where state.hasServed: break
            case .all, .allUnlessServed: state.verdict = state.verdict ?? reading
            }
        }
    }
}
