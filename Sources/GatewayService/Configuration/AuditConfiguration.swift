/// How the audit trail is kept.
package struct AuditConfiguration: Sendable, Equatable {
    /// When a send's record must be in the store.
    package enum Mode: String, Sendable, CaseIterable {
        /// A place in the queue is reserved before the upstream call, and one record is written after it.
        case bounded
        /// An intent is committed before the upstream call and the outcome after it.
        case strict
    }

    /// The mode for sends; changes by operators are always recorded strictly.
    package var mode: Mode

    /// How many days records are kept.
    package var retentionDays: Int

    /// How often what is new is put under a signed checkpoint.
    package var checkpointInterval: Duration

    /// Where the audit is written to besides the store: `stdout`, `file:` and a path, or nothing.
    package var sink: String

    /// How long a record may wait in the queue before it is written.
    package var flushInterval: Duration

    /// How long a change by an operator, or a send in strict mode, may wait for its record; then it is refused.
    package var commitTimeout: Duration

    /// How long the store may hold a batch of records before they go to the spool.
    package var spoolAfter: Duration

    /// How many records the queue holds; beyond it, sends are refused.
    package var queueRecords: Int

    /// How many bytes of records the queue holds; beyond it, sends are refused.
    package var queueBytes: Int

    /// The directory of the spool, where records wait while the store fails; empty for the data directory.
    package var spoolDir: String

    /// How many bytes the spool holds; beyond it, sends are refused.
    package var spoolBytes: Int

    /// Creates the section; what is not named has its default.
    package init(
        mode: Mode = .bounded,
        retentionDays: Int = 400,
        checkpointInterval: Duration = .seconds(10),
        sink: String = "",
        flushInterval: Duration = .milliseconds(10),
        commitTimeout: Duration = .seconds(2),
        spoolAfter: Duration = .milliseconds(100),
        queueRecords: Int = 10_000,
        queueBytes: Int = 64 << 20,
        spoolDir: String = "",
        spoolBytes: Int = 64 << 20
    ) {
        self.mode = mode
        self.retentionDays = retentionDays
        self.checkpointInterval = checkpointInterval
        self.sink = sink
        self.flushInterval = flushInterval
        self.commitTimeout = commitTimeout
        self.spoolAfter = spoolAfter
        self.queueRecords = queueRecords
        self.queueBytes = queueBytes
        self.spoolDir = spoolDir
        self.spoolBytes = spoolBytes
    }

    /// What stands before the path of a second sink's file.
    package static let sinkFileScheme = "file:"
    /// The second sink that is standard output.
    package static let sinkOutput = "stdout"

    /// The path of the second sink's file, if it is one.
    ///
    /// - Parameter dataDir: what a relative path lies in.
    /// - Returns: `nil` when it is none.
    package func sinkPath(dataDir: String) -> String? {
        guard self.sink.hasPrefix(Self.sinkFileScheme) else { return nil }
        let path = String(self.sink.dropFirst(Self.sinkFileScheme.count))
        return path.hasPrefix("/") ? path : "\(dataDir)/\(path)"
    }
}
