package import FCMModel
import Synchronization

/// Lets the calls of a list leave once it is durable that they are about to.
///
/// Calls are marked some at a time, in their order, so that a long list costs few transactions. After a crash those that
/// were marked and have no outcome are unknown.
package final class StartGate: Sendable {
    private enum Decision {
        case pass
        case stop
        case wait
        case mark(Range<Int>)
    }

    private struct State {
        /// How many calls are marked.
        var marked = 0
        var isMarking = false
        var isShut = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let attempt: SendAttempt
    private let places: [Int]
    private let step: Int
    private let state = Mutex(State())

    /// A gate that no call has passed.
    ///
    /// - Parameters:
    ///   - attempt: makes marks durable.
    ///   - places: the calls' places in the whole send.
    ///   - step: how many are marked at once.
    init(_ attempt: SendAttempt, places: [Int], step: Int) {
        self.attempt = attempt
        self.places = places
        self.step = step
    }

    /// Returns when a call may leave.
    ///
    /// - Parameter index: the call's place among those of the list.
    /// - Returns: `false` where it must not, since its leaving could not be kept.
    package func pass(_ index: Int) async -> Bool {
        while true {
            switch self.decide(on: index) {
            case .pass: return true
            case .stop: return false
            case .wait: await self.waitForMark()
            case .mark(let range):
                let isDurable = await self.attempt.start(Array(self.places[range]))
                self.finishMark(to: range.upperBound, isDurable: isDurable)
            }
        }
    }

    /// Keeps what became of a call.
    package func finish(_ index: Int, _ outcome: RecipientOutcome) {
        self.attempt.finish(self.places[index], outcome)
    }

    private func decide(on index: Int) -> Decision {
        self.state.withLock { state in
            if index < state.marked { return .pass }
            if state.isShut || index >= self.places.count { return .stop }
            if state.isMarking { return .wait }
            state.isMarking = true
            return .mark(state.marked..<min(max(state.marked + self.step, index + 1), self.places.count))
        }
    }

    private func finishMark(to end: Int, isDurable: Bool) {
        let waiters = self.state.withLock { state in
            state.isMarking = false
            if isDurable { state.marked = end } else { state.isShut = true }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func waitForMark() async {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                guard state.isMarking else { return true }
                state.waiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
