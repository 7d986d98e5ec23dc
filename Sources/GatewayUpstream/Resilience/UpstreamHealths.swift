import GatewayCore
import Synchronization

/// The health of each tenant's way to FCM by the legacy protocol; a new credential begins in health.
final class UpstreamHealths: Sendable {
    private struct Entry {
        let version: Int
        let health: UpstreamHealth
    }

    private let entries = Mutex<[TenantID: Entry]>([:])
    private let metrics: ResilienceMetrics

    init(metrics: ResilienceMetrics) {
        self.metrics = metrics
    }

    /// The health of a tenant's way.
    func health(of profile: TenantProfile) -> UpstreamHealth {
        self.entries.withLock { entries in
            if let entry = entries[profile.id], entry.version == profile.legacyCredentialVersion { return entry.health }
            let health = UpstreamHealth(
                gauge: self.metrics.gauge(of: profile.id, api: .legacy),
                metrics: self.metrics
            )
            entries[profile.id] = Entry(version: profile.legacyCredentialVersion, health: health)
            return health
        }
    }
}
