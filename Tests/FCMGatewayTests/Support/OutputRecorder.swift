import Synchronization

@testable import FCMGateway

/// Keeps what a verb prints.
final class OutputRecorder: Sendable {
    private let kept = Mutex<[CommandOutput]>([])

    /// Everything printed so far.
    var outputs: [CommandOutput] { self.kept.withLock { $0 } }

    /// Takes something printed.
    func print(_ output: CommandOutput) {
        self.kept.withLock { $0.append(output) }
    }
}
