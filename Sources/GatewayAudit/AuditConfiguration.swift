/// The section `audit`: how records are queued, written, spooled, signed and removed.
package struct AuditConfiguration: Sendable, Equatable {
    /// When a send's record must be in the store; operators' changes are always recorded strictly.
    package enum Mode: String, Sendable, CaseIterable {
        /// A place in the queue is reserved before the upstream call, and one record is written after it.
        case bounded
        /// An intent is committed before the upstream call and the outcome after it.
        case strict
    }

    package var mode = Mode.bounded
    package var retentionDays = 400
    /// The time between two signed checkpoints while there are new records.
    package var checkpointInterval = Duration.seconds(60)
    /// The second place that records are written to: `stdout`, `file:` and a path, or nothing.
    package var sink = ""
    /// The time that a record may wait for others to share its transaction.
    package var flushInterval = Duration.milliseconds(10)
    /// The time that a commit may take before it counts as refused.
    package var commitTimeout = Duration.seconds(2)
    /// The time that the store may take for a batch before the records go to the spool.
    package var spoolAfter = Duration.milliseconds(100)
    /// The most records that may wait or be reserved.
    package var queueRecords = 10_000
    /// The most bytes of records that may wait; what was promised a place before it was reached is taken beyond it.
    package var queueBytes = 64 << 20
    /// The directory of the spool; empty for the data directory.
    package var spoolDir = ""
    /// The most bytes that the spool holds.
    package var spoolBytes = 64 << 20
    /// The time between two summaries of refused requests; no key sets it.
    package var summaryInterval = Duration.seconds(1)
    /// The pause before a refused write is repeated; no key sets it.
    package var retryInterval = Duration.milliseconds(200)

    package init() {}

    package static let sinkOutput = "stdout"
    package static let sinkFileScheme = "file:"

    /// The path of the second sink, if it is a file.
    package var sinkFile: String? {
        guard self.sink.hasPrefix(Self.sinkFileScheme) else { return nil }
        return String(self.sink.dropFirst(Self.sinkFileScheme.count))
    }
}
