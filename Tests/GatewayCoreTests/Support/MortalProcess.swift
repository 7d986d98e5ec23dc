import Synchronization

/// A process that dies at a given step. Its later actions have no effect.
final class MortalProcess: Sendable {
    private struct State {
        var steps: [String] = []
        var stepsLeft: Int
    }

    private let state: Mutex<State>

    init(dyingAfter steps: Int = .max) {
        self.state = Mutex(State(stepsLeft: steps))
    }

    var steps: [String] { self.state.withLock { $0.steps } }

    var isDead: Bool { self.state.withLock { $0.stepsLeft <= 0 } }

    /// Takes a step. Returns `false` if the process is dead.
    func step(_ name: String) -> Bool {
        self.state.withLock { state in
            guard state.stepsLeft > 0 else { return false }
            state.stepsLeft -= 1
            state.steps.append(name)
            return true
        }
    }
}
