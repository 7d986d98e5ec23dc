import Synchronization

/// Decides which requests a process takes on, so that those it does take on are served in time.
///
/// Nothing waits here: a request is taken on or refused at once. It counts as the calls to FCM that it has in flight at a
/// time, and is taken on while what is in flight before it is below the limit, so that a list always fits an idle process.
/// Counters are atomic and looked at before they are raised, so that refusing costs next to nothing.
package final class LoadShedder: Sendable {
    package let limits: LoadLimits
    private let count = Atomic(0)

    package init(limits: LoadLimits) {
        self.limits = limits
    }

    package var inFlight: Int { self.count.load(ordering: .relaxed) }

    /// Why a request would be refused whatever it says, as far as is known before it is read; `nil` for one that is worth
    /// reading.
    package func refusal(of tenant: TenantLoad?, lag: Duration) -> ShedReason? {
        if self.isBehind(lag, limit: self.limits.maxLag) { return .lag }
        if self.inFlight >= self.limits.maxInFlight { return .inFlight }
        if let tenant, tenant.inFlight >= self.limits.maxInFlightPerTenant { return .tenantShare }
        return nil
    }

    /// Takes a request on, whose event loop is behind by a lag; `nil` when it is taken on and has to
    /// ``leave(_:calls:)``, else why not.
    package func enter(_ tenant: TenantLoad, calls: Int = 1, isUrgent: Bool, lag: Duration) -> ShedReason? {
        if self.isBehind(lag, limit: isUrgent ? self.limits.maxLag : self.limits.maxLagForNormal) { return .lag }
        let before = self.count.add(calls, ordering: .relaxed).oldValue
        let refusal: ShedReason? =
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

/// How much a process takes on at once.
package struct LoadLimits: Sendable, Hashable {
    /// Requests in flight, each as many times as it has calls to FCM in flight.
    package let maxInFlight: Int
    /// The same of one tenant: half of all.
    package let maxInFlightPerTenant: Int
    /// What may be in flight while those without high priority are taken on: four in five of all.
    package let maxInFlightForNormal: Int
    /// Requests in flight below which a lag does not count: so few are served soon, however slow the machine is.
    package let maxInFlightBesideLag: Int
    package let maxLag: Duration
    /// How far an event loop may be behind while requests without high priority are taken on: four fifths.
    package let maxLagForNormal: Duration

    /// Limits that follow from two, of which the first is at least 1.
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

/// Why a request is not served under load.
package enum ShedReason: String, Sendable, Hashable, CaseIterable {
    case inFlight = "in_flight"
    case tenantShare = "tenant_share"
    /// What is left is reserved for messages of high priority.
    case reserve
    /// The request's event loop has been behind for some time.
    case lag
    case bufferedBytes = "buffered_bytes"
}

/// What one tenant has in flight: requests, and of those that are made into many calls, these. It outlives the
/// snapshots of the directory, so that requests that began under an earlier one still count.
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
