import GatewayCore
import Synchronization

/// The health of each tenant's way to FCM by the legacy protocol; a new credential begins in health.
final class UpstreamHealths: Sendable {
    private struct Entry {
        /// Tells a tenant from an earlier one of the same name.
        let tenant: LimitKey
        let version: Int
        let health: UpstreamHealth

        func isOf(_ profile: TenantProfile?) -> Bool {
            guard let profile else { return false }
            return self.version == profile.legacyCredentialVersion && self.tenant == profile.limitKey
        }
    }

    private struct State {
        var entries: [TenantID: Entry] = [:]
        /// The tenants that there are; nil before that was told.
        var tenants: [TenantID: TenantProfile]?
    }

    private let state = Mutex(State())
    private let metrics: ResilienceMetrics

    init(metrics: GatewayMetrics) {
        self.metrics = ResilienceMetrics(.legacy, metrics)
    }

    /// How many are known.
    var count: Int { self.state.withLock { $0.entries.count } }

    /// Forgets the health of all but these tenants' present credentials.
    func keep(_ tenants: [TenantID: TenantProfile]) {
        let forgotten = self.state.withLock { state in
            state.tenants = tenants
            let forgotten = state.entries.filter { id, entry in !entry.isOf(tenants[id]) }
            for id in forgotten.keys { state.entries[id] = nil }
            return forgotten.values
        }
        for entry in forgotten { entry.health.retire() }
    }

    /// The health of a tenant's way.
    func health(of profile: TenantProfile) -> UpstreamHealth {
        self.state.withLock { state in
            if let entry = state.entries[profile.id], entry.isOf(profile) { return entry.health }
            let health = UpstreamHealth(of: profile.id, metrics: self.metrics)
            let entry = Entry(tenant: profile.limitKey, version: profile.legacyCredentialVersion, health: health)
            // A call may still be under way for a tenant that is gone, or by a credential that was replaced.
            if let tenants = state.tenants, !entry.isOf(tenants[profile.id]) { return health }
            state.entries[profile.id] = entry
            return health
        }
    }
}
