package import CoreMetrics
package import GatewayCore
import Metrics
import Synchronization

/// What is counted of repeats and breakers.
package final class ResilienceMetrics: Sendable {
    private let repeats: [RepeatReason: Counter]
    private let exhaustions: [RepeatReason: Counter]
    private let factory: any MetricsFactory
    private let tenantLabels: TenantLabels
    /// Of the tenants without a label of their own.
    private let sharedBreakers = Mutex<[UpstreamKind: SharedBreakers]>([:])

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - tenantLabels: names tenants.
    package init(factory: any MetricsFactory, tenantLabels: TenantLabels = TenantLabels()) {
        self.tenantLabels = tenantLabels
        func counters(_ label: String) -> [RepeatReason: Counter] {
            Dictionary(
                uniqueKeysWithValues: RepeatReason.allCases.map { reason in
                    (reason, Counter(label: label, dimensions: [("reason", reason.rawValue)], factory: factory))
                }
            )
        }
        self.repeats = counters("fcmgw_retries_total")
        self.exhaustions = counters("fcmgw_retry_budget_exhausted_total")
        self.factory = factory
    }

    /// Counts a repeat.
    func repeated(_ reason: RepeatReason) {
        self.repeats[reason]?.increment()
    }

    /// Counts a repeat that there was no budget for.
    func exhausted(_ reason: RepeatReason) {
        self.exhaustions[reason]?.increment()
    }

    /// The gauge of a tenant's breaker; tenants without a label of their own share one that shows the worst of theirs.
    func gauge(of tenant: TenantID, api: UpstreamKind) -> BreakerGauge {
        if let project = self.tenantLabels.ownLabel(of: tenant) {
            return .own(self.meter(of: project, api: api))
        }
        let shared = self.sharedBreakers.withLock { breakers in
            if let known = breakers[api] { return known }
            let made = SharedBreakers(meter: self.meter(of: TenantLabels.shared, api: api))
            breakers[api] = made
            return made
        }
        return .shared(shared, tenant)
    }

    private func meter(of project: String, api: UpstreamKind) -> Meter {
        Meter(
            label: "fcmgw_breaker_state",
            dimensions: [("api", api.rawValue), ("project", project)],
            factory: self.factory
        )
    }
}
