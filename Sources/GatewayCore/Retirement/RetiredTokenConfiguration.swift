/// How much the list of retired tokens holds, and when it is written.
package struct RetiredTokenConfiguration: Sendable {
    /// The most changes that may wait to be written; reports beyond it are left out, and counted.
    package var queueCapacity: Int
    /// The most bytes of tokens that may wait to be written; reports beyond it are left out too.
    package var queueBytes: Int
    /// How long a change may wait for company in its transaction.
    package var flushInterval: Duration
    /// The pause before a refused write is repeated.
    package var retryInterval: Duration
    /// How often waiting reports are looked through.
    package var settleInterval: Duration
    /// How often entries are dropped that are too old or too many.
    package var trimInterval: Duration
    /// For how long an entry is kept that is not reported again.
    package var retention: Duration
    /// The most entries of all tenants together.
    package var maxEntries: Int

    /// The defaults: 50,000 changes of 32 MiB, 100 ms, 1 s, 30 s, 1 h, 90 days and two million entries.
    package init(
        queueCapacity: Int = 50_000,
        queueBytes: Int = 32 * 1024 * 1024,
        flushInterval: Duration = .milliseconds(100),
        retryInterval: Duration = .seconds(1),
        settleInterval: Duration = .seconds(30),
        trimInterval: Duration = .seconds(3_600),
        retention: Duration = .seconds(90 * 86_400),
        maxEntries: Int = 2_000_000
    ) {
        self.queueCapacity = queueCapacity
        self.queueBytes = queueBytes
        self.flushInterval = flushInterval
        self.retryInterval = retryInterval
        self.settleInterval = settleInterval
        self.trimInterval = trimInterval
        self.retention = retention
        self.maxEntries = maxEntries
    }
}
