import Synchronization

/// Decides which requests a process takes on, so that those it does take on are served in time.
///
/// Nothing waits here: a request is taken on or refused at once. It counts as the calls to FCM that it has in flight at a
/// time, and is taken on while what is in flight before it is below the limit, so that a list always fits an idle process.
/// Counters are atomic and looked at before they are
/// raised, so that refusing costs next to nothing.
package final class LoadShedder: Sendable {
    /// The limits.
    package let limits: LoadLimits
    private let count = Atomic(0)

    /// A shedder for a process without requests.
    package init(limits: LoadLimits) {
        self.limits = limits
    }

    /// Calls in flight.
    package var inFlight: Int {
        self.count.load(ordering: .relaxed)
    }

    /// Why a request would be refused whatever it says, as far as is known before it is read.
    ///
    /// - Parameters:
    ///   - tenant: the caller's load; `nil` before it is known.
    ///   - lag: by how much the request's event loop is behind.
    /// - Returns: `nil` for a request that is worth reading.
    package func refusal(of tenant: TenantLoad?, lag: Duration) -> ShedReason? {
        if self.isBehind(lag, limit: self.limits.maxLag) { return .lag }
        if self.inFlight >= self.limits.maxInFlight { return .inFlight }
        if let tenant, tenant.inFlight >= self.limits.maxInFlightPerTenant { return .tenantShare }
        return nil
    }

    /// Takes a request on.
    ///
    /// - Parameters:
    ///   - tenant: the caller's load.
    ///   - calls: what it counts as.
    ///   - isUrgent: whether it is a message of high priority.
    ///   - lag: by how much the request's event loop is behind.
    /// - Returns: `nil` when it is taken on and has to ``leave(_:calls:)``, else why not.
    package func enter(_ tenant: TenantLoad, calls: Int = 1, isUrgent: Bool, lag: Duration) -> ShedReason? {
        if self.isBehind(lag, limit: isUrgent ? self.limits.maxLag : self.limits.maxLagForNormal) { return .lag }
        let before = self.count.add(calls, ordering: .relaxed).oldValue
        guard before < self.limits.maxInFlight else {
            self.count.subtract(calls, ordering: .relaxed)
            return .inFlight
        }
        guard isUrgent || before < self.limits.maxInFlightForNormal else {
            self.count.subtract(calls, ordering: .relaxed)
            return .reserve
        }
        guard tenant.enter(calls: calls, limit: self.limits.maxInFlightPerTenant) else {
            self.count.subtract(calls, ordering: .relaxed)
            return .tenantShare
        }
        return nil
    }

    private func isBehind(_ lag: Duration, limit: Duration) -> Bool {
        lag > limit && self.inFlight >= self.limits.maxInFlightBesideLag
    }

    /// A request that was taken on is over, however it ended.
    package func leave(_ tenant: TenantLoad, calls: Int = 1) {
        tenant.leave(calls: calls)
        self.count.subtract(calls, ordering: .relaxed)
    }
}
