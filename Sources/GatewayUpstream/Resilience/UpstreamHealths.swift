import GatewayCore
import Synchronization

/// The health of each tenant's way to FCM by the legacy protocol; a new credential begins in health.
final class UpstreamHealths: Sendable {
    private struct Entry {
        /// Tells a tenant from an earlier one of the same name.
        let tenant: LimitKey
        let version: Int
        let health: UpstreamHealth

        func isOf(_ profile: TenantProfile) -> Bool {
            self.version == profile.legacyCredentialVersion && self.tenant == profile.limitKey
        }
    }

    private let entries = Mutex<[TenantID: Entry]>([:])
    private let metrics: ResilienceMetrics

    init(metrics: ResilienceMetrics) {
        self.metrics = metrics
    }

    /// The health of a tenant's way.
    func health(of profile: TenantProfile) -> UpstreamHealth {
        self.entries.withLock { entries in
            if let entry = entries[profile.id], entry.isOf(profile) { return entry.health }
            let health = UpstreamHealth(
                gauge: self.metrics.gauge(of: profile.id, api: .legacy),
                metrics: self.metrics
            )
            entries[profile.id] = Entry(
                tenant: profile.limitKey,
                version: profile.legacyCredentialVersion,
                health: health
            )
            return health
        }
    }
}
