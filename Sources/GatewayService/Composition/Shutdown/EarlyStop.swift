import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Ends a gateway that is told to end before it serves.
///
/// The first process of a container gets no signal that it does not trap, so a stop in the middle of a start would be
/// forgotten, and the container killed later in the middle of its work. Before there is anything to drain, the process
/// just ends: nothing has been taken on, and the store takes each step of an upgrade as a whole.
final class EarlyStop: Sendable {
    private let group = Mutex<ServiceGroup?>(nil)
    private let signals: UnixSignalsSequence
    private let logger: Logger

    /// Traps the signals; returns when that is done.
    init(logger: Logger) async {
        self.logger = logger
        self.signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    }

    /// Runs a body, and ends the process when a signal comes before ``arm(_:)``; after it, the group is shut down.
    func watching<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        let watch = Task {
            for await signal in self.signals {
                guard let group = self.group.withLock({ $0 }) else {
                    self.logger.notice("Told to end before the start was done", metadata: ["signal": "\(signal)"])
                    self.logger.flush()
                    exit(EXIT_SUCCESS)
                }
                await group.triggerGracefulShutdown()
            }
        }
        defer { watch.cancel() }
        return try await body()
    }

    /// Has a group take the signals from now on, whether it runs already or is about to.
    func arm(_ group: ServiceGroup) {
        self.group.withLock { $0 = group }
    }
}
