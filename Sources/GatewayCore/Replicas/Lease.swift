import Metrics

/// How replicas of one store share what only one of them may do at a time.
package struct LeaseTerms: Sendable {
    /// How long a lease holds from the moment at which it is granted or renewed.
    package let duration: Duration
    /// The longest that one call to FCM takes; whoever takes a lease over waits for its end and for this besides.
    package let attemptTimeout: @Sendable () -> Duration
    package let uptime: @Sendable () -> ContinuousClock.Instant

    package init(
        duration: Duration,
        attemptTimeout: @escaping @Sendable () -> Duration,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        (self.duration, self.attemptTimeout, self.uptime) = (duration, attemptTimeout, uptime)
    }

    /// How often holders look whether they have to renew: half as long as a lease lasts before it is due.
    package var renewalInterval: Duration { self.duration / 6 }
}

/// What its holder knows of a lease in the store. Pure.
///
/// The store counts from the moment at which it grants one, on its own clock. The holder counts from the moment at which it
/// asked, on its monotonic clock, so that its lease never ends later than the store's, however long an answer or a paused
/// process takes.
struct Lease: Sendable, Hashable {
    let duration: Duration
    /// `nil` while it is not held.
    private(set) var end: ContinuousClock.Instant?

    init(duration: Duration) {
        self.duration = duration
    }

    mutating func grant(askedAt moment: ContinuousClock.Instant) {
        let end = moment + self.duration
        self.end = max(self.end ?? end, end)
    }

    mutating func lose() {
        self.end = nil
    }

    /// Whether something that begins now and takes so long at most ends before the lease does.
    func covers(_ timeout: Duration, at now: ContinuousClock.Instant) -> Bool {
        guard let end = self.end else { return false }
        return now + timeout < end
    }

    /// Whether a third of it has passed.
    func isDue(at now: ContinuousClock.Instant) -> Bool {
        guard let end = self.end else { return false }
        return end - now <= self.duration * 2 / 3
    }
}

/// Counts what becomes of leases of one kind; made only where there are leases.
struct LeaseCounters: Sendable {
    /// What a lease is of; the raw value is the metrics' label.
    enum Kind: String {
        /// A request with an idempotency key.
        case request
        /// A device group.
        case group
    }

    /// From another replica, to this one.
    let takeovers: Counter
    /// From this replica, which was still at work.
    let losses: Counter

    init(_ kind: Kind, _ metrics: GatewayMetrics) {
        self.takeovers = metrics.counter(.leaseTakeovers, kind.rawValue)
        self.losses = metrics.counter(.leaseLosses, kind.rawValue)
    }
}
