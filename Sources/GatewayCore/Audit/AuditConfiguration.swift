/// How the audit's writer behaves.
package struct AuditConfiguration: Sendable {
    /// Whether an intent is committed before each send, and its outcome before the answer.
    package var isStrict = false
    /// How long the store may take for a batch before its records are spooled meanwhile.
    package var lateAfter = Duration.milliseconds(100)
    /// The most records that may wait or be reserved.
    package var queueCapacity: Int
    /// The most bytes of records that may wait; what was promised a place before it was reached is taken beyond it.
    package var queueBytes: Int
    /// How long a record may wait for company in its transaction.
    package var flushInterval: Duration
    /// The pause before a refused write is repeated.
    package var retryInterval: Duration
    /// How long a commit may take before it counts as refused.
    package var commitTimeout: Duration

    /// The defaults: 10,000 records, 64 MiB, 10 ms, 200 ms, 2 s.
    package init(
        queueCapacity: Int = 10_000,
        queueBytes: Int = 64 << 20,
        flushInterval: Duration = .milliseconds(10),
        retryInterval: Duration = .milliseconds(200),
        commitTimeout: Duration = .seconds(2)
    ) {
        self.queueCapacity = queueCapacity
        self.queueBytes = queueBytes
        self.flushInterval = flushInterval
        self.retryInterval = retryInterval
        self.commitTimeout = commitTimeout
    }
}
