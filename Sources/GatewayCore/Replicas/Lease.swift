import Metrics

/// The terms of the leases by which replicas of one store take turns.
package struct LeaseTerms: Sendable {
    /// The time for which a lease holds, from the moment it is granted or renewed.
    package let duration: Duration
    /// The longest time that one call to FCM takes. A lease can be taken over this long after its end: a call that was
    /// written in time may still wait in a buffer.
    package let attemptTimeout: @Sendable () -> Duration
    package let uptime: @Sendable () -> Uptime

    package init(
        duration: Duration,
        attemptTimeout: @escaping @Sendable () -> Duration,
        uptime: @escaping @Sendable () -> Uptime = { .now }
    ) {
        (self.duration, self.attemptTimeout, self.uptime) = (duration, attemptTimeout, uptime)
    }

    /// The terms in a process that has its store to itself, where no lease is ever taken over.
    package static let unshared = LeaseTerms(duration: .seconds(30), attemptTimeout: { .zero })

    /// The time between two checks for leases that are due: half of the third after which a lease is renewed.
    package var renewalInterval: Duration { self.duration / 6 }
}

/// A holder's view of a lease in the store. Pure.
///
/// The store counts from the moment at which it grants the lease, on its own clock. The holder counts from the moment
/// of its request, on its monotonic clock. So the holder's lease never ends after the store's, however long an answer
/// takes or a process is paused.
///
/// Example: a lease of 30 s, and calls that take at most 10 s. The holder asks at 0 s, and the store grants at 1 s.
///
///     holder  0 s ask ........ 10 s renew ........ 20 s last call begins ... 30 s ends
///     store       1 s grants ....................................................... 31 s ends .... 41 s taken over
struct Lease: Sendable, Hashable {
    /// Counts takeovers and losses of leases of one kind. Exists only where replicas share a store.
    struct Counters: Sendable {
        /// The kind of work under lease. The raw value is the metrics' label.
        enum Kind: String {
            /// A request with an idempotency key.
            case request
            /// A device group.
            case group
        }

        /// Leases that this replica took from another.
        let takeovers: Counter
        /// Leases that this replica lost while it still worked.
        let losses: Counter

        init(_ kind: Kind, _ metrics: GatewayMetrics) {
            self.takeovers = metrics.counter(.leaseTakeovers, kind.rawValue)
            self.losses = metrics.counter(.leaseLosses, kind.rawValue)
        }
    }

    let duration: Duration
    /// `nil` while it is not held.
    private(set) var end: Uptime?

    init(duration: Duration) {
        self.duration = duration
    }

    mutating func grant(askedAt moment: Uptime) {
        let end = moment + self.duration
        self.end = max(self.end ?? end, end)
    }

    mutating func lose() {
        self.end = nil
    }

    /// True if work that begins now and takes at most this long ends before the lease does.
    func covers(_ timeout: Duration, at now: Uptime) -> Bool {
        guard let end = self.end else { return false }
        return now + timeout < end
    }

    /// True if a third of it has passed.
    func isDue(at now: Uptime) -> Bool {
        guard let end = self.end else { return false }
        return end - now <= self.duration * 2 / 3
    }
}
