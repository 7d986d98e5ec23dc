import FCMModel
import Metrics
import Synchronization

/// The store's answer to a replica that asks for the lease of a device group.
package enum GroupLeaseOutcome: Sendable, Hashable {
    case granted
    /// Granted, after another replica that did not end its change.
    case takenOver
    /// Another replica has the lease, or had it within the time of one call to FCM.
    case held
}

/// Lets one replica of a store change a device group at a time; its calls throw `storeUnavailable`, and `notFound` for
/// a tenant that is gone.
package protocol GroupLeaseStore: Sendable {
    /// Takes the lease of a group, which need not exist.
    func acquire(_ name: String, of tenant: TenantID) async throws(GatewayError) -> GroupLeaseOutcome

    /// Returns false if another replica has the lease.
    func renew(_ name: String, of tenant: TenantID) async throws(GatewayError) -> Bool

    func release(_ name: String, of tenant: TenantID) async throws(GatewayError)
}

/// Takes the leases of device groups.
package struct GroupLeases: Sendable {
    private static let pollInterval = Duration.milliseconds(200)

    fileprivate let store: any GroupLeaseStore
    fileprivate let terms: LeaseTerms
    fileprivate let counters: Lease.Counters

    package init(store: any GroupLeaseStore, terms: LeaseTerms, metrics: GatewayMetrics = GatewayMetrics()) {
        (self.store, self.terms) = (store, terms)
        self.counters = Lease.Counters(.group, metrics)
    }

    /// Waits for a group's lease until a deadline, or until the surrounding task is cancelled; `nil` if another replica
    /// still has it then.
    func acquire(
        _ name: String,
        of tenant: TenantID,
        until deadline: Uptime
    ) async throws(GatewayError) -> GroupLease? {
        while true {
            let asked = self.terms.uptime()
            let outcome = try await self.store.acquire(name, of: tenant)
            if outcome != .held {
                if outcome == .takenOver { self.counters.takeovers.increment() }
                return GroupLease(name, of: tenant, askedAt: asked, isTakenOver: outcome == .takenOver, from: self)
            }
            guard Uptime.now + Self.pollInterval < deadline,
                (try? await Task.sleep(for: Self.pollInterval)) != nil
            else { return nil }
        }
    }
}

/// The lease of one device group, from its grant to its release.
final class GroupLease: Sendable {
    private let name: String
    private let tenant: TenantID
    private let leases: GroupLeases
    private let state: Mutex<(lease: Lease, isTakenOver: Bool)>

    fileprivate init(
        _ name: String,
        of tenant: TenantID,
        askedAt moment: Uptime,
        isTakenOver: Bool,
        from leases: GroupLeases
    ) {
        (self.name, self.tenant, self.leases) = (name, tenant, leases)
        var lease = Lease(duration: leases.terms.duration)
        lease.grant(askedAt: moment)
        self.state = Mutex((lease, isTakenOver))
    }

    /// True from a takeover until ``settleTakeover()``.
    var isTakenOver: Bool { self.state.withLock { $0.isTakenOver } }

    /// Notes that this replica has dealt with the other one's interrupted change.
    func settleTakeover() { self.state.withLock { $0.isTakenOver = false } }

    /// When calls to FCM have to end: at once if the lease was lost.
    var end: Uptime { self.state.withLock { $0.lease.end } ?? self.leases.terms.uptime() }

    /// Renews the lease while the closure runs, and releases it then.
    func renewing<Answer: Sendable>(_ body: () async throws(Refusal) -> Answer) async throws(Refusal) -> Answer {
        let result: Result<Answer, Refusal> = await withDiscardingTaskGroup { tasks in
            tasks.addTask { await self.renewRegularly() }
            defer { tasks.cancelAll() }
            do throws(Refusal) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        await self.release()
        return try result.get()
    }

    /// Renews the lease after each third of it, until it is lost or the task is cancelled.
    func renewRegularly() async {
        let terms = self.leases.terms
        while (try? await Task.sleep(for: terms.renewalInterval)) != nil {
            let asked = terms.uptime()
            guard self.state.withLock({ $0.lease.isDue(at: asked) }) else { continue }
            // A store that does not answer leaves the lease to end.
            guard let isRenewed = try? await self.leases.store.renew(self.name, of: self.tenant) else { continue }
            guard isRenewed else {
                self.leases.counters.losses.increment()
                return self.state.withLock { $0.lease.lose() }
            }
            self.state.withLock { $0.lease.grant(askedAt: asked) }
        }
    }

    /// Releases the lease; if the store does not answer, it ends by itself.
    ///
    /// A takeover that is not settled leaves the lease to end by itself too, so that the next holder takes it over
    /// again.
    func release() async {
        guard !self.isTakenOver else { return }
        try? await self.leases.store.release(self.name, of: self.tenant)
    }
}
