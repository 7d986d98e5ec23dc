/// How the audit trail is kept.
struct AuditConfiguration: Sendable, Equatable {
    /// When a send's record must be in the store.
    enum Mode: String, Sendable, CaseIterable {
        /// A place in the queue is reserved before the upstream call, and one record is written after it.
        case bounded
        /// An intent is committed before the upstream call and the outcome after it.
        case strict
    }

    /// The mode for sends; changes by operators are always recorded strictly.
    var mode: Mode

    /// How many days records are kept.
    var retentionDays: Int

    /// How long a record may wait in the queue before it is written.
    var flushInterval: Duration

    /// How many records the queue holds; beyond it, sends are refused.
    var queueRecords: Int

    /// How many bytes of records the queue holds; beyond it, sends are refused.
    var queueBytes: Int

    /// Creates the section; what is not named has its default.
    init(
        mode: Mode = .bounded,
        retentionDays: Int = 400,
        flushInterval: Duration = .milliseconds(10),
        queueRecords: Int = 10_000,
        queueBytes: Int = 64 << 20
    ) {
        self.mode = mode
        self.retentionDays = retentionDays
        self.flushInterval = flushInterval
        self.queueRecords = queueRecords
        self.queueBytes = queueBytes
    }
}
