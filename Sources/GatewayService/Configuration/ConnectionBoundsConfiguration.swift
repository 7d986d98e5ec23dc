/// What a listener puts up with from its peers; both listeners have these bounds.
package struct ConnectionBoundsConfiguration: Sendable, Equatable {
    /// How long an idle connection is kept; longer than the balancer in front does, so that it closes first.
    package var keepAliveTimeout: Duration

    /// How long a request's head may take to arrive.
    package var headTimeout: Duration

    /// How long a request's body may take to arrive, counted from its head.
    package var bodyTimeout: Duration

    /// How long an answer may wait for its reader.
    package var writeStallTimeout: Duration

    /// The most connections held at once.
    package var maxConnections: Int

    /// Creates bounds; what is not named has its default.
    package init(
        keepAliveTimeout: Duration = .milliseconds(75_000),
        headTimeout: Duration = .milliseconds(5_000),
        bodyTimeout: Duration = .milliseconds(10_000),
        writeStallTimeout: Duration = .milliseconds(10_000),
        maxConnections: Int = 16_384
    ) {
        self.keepAliveTimeout = keepAliveTimeout
        self.headTimeout = headTimeout
        self.bodyTimeout = bodyTimeout
        self.writeStallTimeout = writeStallTimeout
        self.maxConnections = maxConnections
    }

    /// Reads a listener's bounds; problems are kept by the section.
    ///
    /// - `keepAliveTimeoutMs` (ms, 1,000–3,600,000), `headTimeoutMs` (ms, 100–60,000), `bodyTimeoutMs` (ms,
    ///   100–600,000), `writeStallTimeoutMs` (ms, 100–600,000), `maxConnections` (1–1,000,000).
    mutating func read(_ section: inout SectionReader) {
        section.milliseconds("keepAliveTimeoutMs", in: 1_000...3_600_000, into: &self.keepAliveTimeout)
        section.milliseconds("headTimeoutMs", in: 100...60_000, into: &self.headTimeout)
        section.milliseconds("bodyTimeoutMs", in: 100...600_000, into: &self.bodyTimeout)
        section.milliseconds("writeStallTimeoutMs", in: 100...600_000, into: &self.writeStallTimeout)
        section.wholeNumber("maxConnections", in: 1...1_000_000, into: &self.maxConnections)
    }
}
