import Metrics
import Synchronization

/// Whether a replica may change a device group.
package enum GroupLeaseOutcome: Sendable, Hashable {
    case granted
    /// Another replica began a change and did not end it.
    case takenOver
    /// Another replica is at it, or was within the time of one call to FCM.
    case held
}

/// Lets one replica of a store change a device group at a time; its calls throw `storeUnavailable`, and `notFound` for a
/// tenant that is gone.
package protocol GroupLeaseStore: Sendable {
    /// Takes the lease of a group, which need not be there.
    func acquire(_ name: String, of tenant: TenantID) async throws(GatewayError) -> GroupLeaseOutcome

    /// `false` where another replica has the lease.
    func renew(_ name: String, of tenant: TenantID) async throws(GatewayError) -> Bool

    func release(_ name: String, of tenant: TenantID) async throws(GatewayError)
}

/// The leases that this replica has, one for each group that it is changing.
package final class GroupLeases: Sendable {
    private static let pollInterval = Duration.milliseconds(200)

    private struct Key: Hashable {
        let tenant: TenantID
        let name: String
    }

    private let store: any GroupLeaseStore
    private let terms: LeaseTerms
    private let counters: LeaseCounters
    private let held = Mutex<[Key: Lease]>([:])

    package init(store: any GroupLeaseStore, terms: LeaseTerms, metrics: GatewayMetrics = GatewayMetrics()) {
        (self.store, self.terms) = (store, terms)
        self.counters = LeaseCounters(.group, metrics)
    }

    /// Waits for a group's lease until a deadline, or until the surrounding task is cancelled; `nil` where it is not had.
    /// Otherwise ``release(_:of:)`` must follow, or ``abandon(_:of:)``.
    func acquire(
        _ name: String,
        of tenant: TenantID,
        until deadline: ContinuousClock.Instant
    ) async throws(GatewayError) -> GroupLeaseOutcome? {
        while true {
            let asked = self.terms.uptime()
            let outcome = try await self.store.acquire(name, of: tenant)
            if outcome != .held {
                var lease = Lease(duration: self.terms.duration)
                lease.grant(askedAt: asked)
                let granted = lease
                self.held.withLock { $0[Key(tenant: tenant, name: name)] = granted }
                if outcome == .takenOver { self.counters.takeovers.increment() }
                return outcome
            }
            guard ContinuousClock.now + Self.pollInterval < deadline,
                (try? await Task.sleep(for: Self.pollInterval)) != nil
            else { return nil }
        }
    }

    /// When calls to FCM have to end: at once where the lease was lost. `nil` for a group that is not being changed.
    func end(of name: String, of tenant: TenantID) -> ContinuousClock.Instant? {
        let lease = self.held.withLock { $0[Key(tenant: tenant, name: name)] }
        return lease.map { $0.end ?? self.terms.uptime() }
    }

    /// Renews a lease after each third of it, until it is lost or the task is cancelled.
    func renewRegularly(_ name: String, of tenant: TenantID) async {
        let key = Key(tenant: tenant, name: name)
        while (try? await Task.sleep(for: self.terms.renewalInterval)) != nil {
            let asked = self.terms.uptime()
            guard self.held.withLock({ $0[key]?.isDue(at: asked) }) == true else { continue }
            // A store that does not answer leaves the lease to end.
            guard let isRenewed = try? await self.store.renew(name, of: tenant) else { continue }
            guard isRenewed else {
                self.counters.losses.increment()
                return self.held.withLock { $0[key]?.lose() ?? () }
            }
            self.held.withLock { $0[key]?.grant(askedAt: asked) ?? () }
        }
    }

    /// Gives a lease back; where the store does not answer, it ends by itself, and who comes then looks twice.
    func release(_ name: String, of tenant: TenantID) async {
        let lease = self.held.withLock { $0.removeValue(forKey: Key(tenant: tenant, name: name)) }
        if lease != nil { try? await self.store.release(name, of: tenant) }
    }

    /// Has a lease end by itself, as a replica's that died: what it took over is still to be looked at.
    func abandon(_ name: String, of tenant: TenantID) {
        _ = self.held.withLock { $0.removeValue(forKey: Key(tenant: tenant, name: name)) }
    }
}
