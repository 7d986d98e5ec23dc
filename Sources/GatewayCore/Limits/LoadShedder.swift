import Synchronization

/// Decides which requests a process accepts, so that accepted requests are served in time.
///
/// A request is accepted or refused at once and never waits. It weighs as many calls to FCM as it has in flight at a
/// time. It is accepted while the weight in flight before it is below the limit, so a list always fits an idle process.
/// Counters are atomic and read before they are increased, so a refusal costs next to nothing.
package final class LoadShedder: Sendable {
    /// One tenant's weight in flight (``LoadShedder``). It outlives the snapshots of the directory, so requests that
    /// began under an earlier one still count.
    package final class TenantLoad: Sendable {
        private static let lastNumber = Atomic(0)

        /// A small number that no other tenant of the process has, from 1.
        package let number: Int
        private let count = Atomic(0)

        package init() {
            self.number = Self.lastNumber.add(1, ordering: .relaxed).newValue
        }

        package var inFlight: Int { self.count.load(ordering: .relaxed) }

        func enter(calls: Int, limit: Int) -> Bool {
            guard self.count.add(calls, ordering: .relaxed).oldValue < limit else {
                self.leave(calls: calls)
                return false
            }
            return true
        }

        func leave(calls: Int) {
            self.count.subtract(calls, ordering: .relaxed)
        }
    }

    /// The most work that a process accepts at once.
    package struct Limits: Sendable, Hashable {
        /// Requests in flight, each weighed by its calls to FCM in flight.
        package let maxInFlight: Int
        /// The same of one tenant: half of all.
        package let maxInFlightPerTenant: Int
        /// The weight in flight below which requests without high priority are accepted: four fifths of all.
        package let maxInFlightForNormal: Int
        /// Requests in flight below which a lag does not count: so few are served soon even on a slow machine.
        package let maxInFlightBesideLag: Int
        package let maxLag: Duration
        /// The lag up to which requests without high priority are accepted: four fifths of ``maxLag``.
        package let maxLagForNormal: Duration

        /// Derives all limits from two. The first must be at least 1.
        package init(maxInFlight: Int, maxLag: Duration) {
            precondition(maxInFlight >= 1, "maxInFlight must be at least 1, not \(maxInFlight)")
            self.maxInFlight = maxInFlight
            self.maxInFlightPerTenant = max(1, maxInFlight / 2)
            self.maxInFlightForNormal = max(1, maxInFlight - maxInFlight / 5)
            self.maxInFlightBesideLag = min(64, maxInFlight / 4)
            self.maxLag = maxLag
            self.maxLagForNormal = maxLag * 4 / 5
        }
    }

    /// The reason why a request is refused under load.
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        case inFlight = "in_flight"
        case tenantShare = "tenant_share"
        /// The rest is reserved for messages of high priority.
        case reserve
        /// The request's event loop has lagged for some time.
        case lag
        case bufferedBytes = "buffered_bytes"
    }

    package let limits: Limits
    private let count = Atomic(0)

    package init(limits: Limits) {
        self.limits = limits
    }

    package var inFlight: Int { self.count.load(ordering: .relaxed) }

    /// Returns the reason to refuse a request before its body is read, or `nil` if it should be read.
    package func refusal(of tenant: TenantLoad?, lag: Duration) -> Reason? {
        if self.isBehind(lag, limit: self.limits.maxLag) { return .lag }
        if self.inFlight >= self.limits.maxInFlight { return .inFlight }
        if let tenant, tenant.inFlight >= self.limits.maxInFlightPerTenant { return .tenantShare }
        return nil
    }

    /// Accepts a request whose event loop lags by this much. Returns `nil`, and then ``leave(_:calls:)`` must follow,
    /// or the reason for a refusal.
    package func enter(_ tenant: TenantLoad, calls: Int = 1, isUrgent: Bool, lag: Duration) -> Reason? {
        if self.isBehind(lag, limit: isUrgent ? self.limits.maxLag : self.limits.maxLagForNormal) { return .lag }
        let before = self.count.add(calls, ordering: .relaxed).oldValue
        let refusal: Reason? =
            if before >= self.limits.maxInFlight {
                .inFlight
            } else if !isUrgent, before >= self.limits.maxInFlightForNormal {
                .reserve
            } else if !tenant.enter(calls: calls, limit: self.limits.maxInFlightPerTenant) {
                .tenantShare
            } else {
                nil
            }
        if refusal != nil { self.count.subtract(calls, ordering: .relaxed) }
        return refusal
    }

    private func isBehind(_ lag: Duration, limit: Duration) -> Bool {
        lag > limit && self.inFlight >= self.limits.maxInFlightBesideLag
    }

    package func leave(_ tenant: TenantLoad, calls: Int = 1) {
        tenant.leave(calls: calls)
        self.count.subtract(calls, ordering: .relaxed)
    }
}
