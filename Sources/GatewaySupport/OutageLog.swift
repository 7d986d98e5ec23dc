package import Logging
import Synchronization

/// Logs an outage twice: its first failure with the cause, and its end.
package final class OutageLog: Sendable {
    private let failure: Logger.Message
    private let end: Logger.Message
    private let logger: Logger
    private let hasFailed = Atomic(false)

    /// True from the first failure to the next success.
    package var isFailing: Bool { self.hasFailed.load(ordering: .relaxed) }

    /// A log of an outage that has not begun.
    package init(_ failure: Logger.Message, end: Logger.Message, _ logger: Logger) {
        (self.failure, self.end, self.logger) = (failure, end, logger)
    }

    package func failed(_ error: GatewayError) {
        guard !self.hasFailed.exchange(true, ordering: .relaxed) else { return }
        self.logger.error(self.failure, metadata: ["cause": "\(error.message)"])
    }

    package func succeeded() {
        // Most calls find no outage, and an exchange would be a write in each of them.
        guard self.isFailing else { return }
        if self.hasFailed.exchange(false, ordering: .relaxed) { self.logger.notice(self.end) }
    }
}
