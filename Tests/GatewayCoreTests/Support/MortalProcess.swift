import Synchronization

/// A process that dies at a given step; after it nothing of what it does has any effect.
final class MortalProcess: Sendable {
    private struct State {
        var steps: [String] = []
        var stepsLeft: Int
    }

    private let state: Mutex<State>

    /// A process that lives for so many steps.
    init(dyingAfter steps: Int = .max) {
        self.state = Mutex(State(stepsLeft: steps))
    }

    /// What it has done so far.
    var steps: [String] { self.state.withLock { $0.steps } }

    /// Whether it is dead.
    var isDead: Bool { self.state.withLock { $0.stepsLeft <= 0 } }

    /// Takes a step; `false` where it dies before it, or has died.
    func step(_ name: String) -> Bool {
        self.state.withLock { state in
            guard state.stepsLeft > 0 else { return false }
            state.stepsLeft -= 1
            state.steps.append(name)
            return true
        }
    }
}
