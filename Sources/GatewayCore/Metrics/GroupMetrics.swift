package import Metrics
import Synchronization

/// What is counted of the management of device groups.
package final class GroupMetrics: Sendable {
    private struct Key: Hashable {
        var tenant: String
        var action: String
        var outcome: String
    }

    private let requests: Mutex<MetricFamily<Key, Counter>>
    private let tenantLabels: TenantLabels

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - tenantLabels: names tenants.
    package init(factory: any MetricsFactory, tenantLabels: TenantLabels = TenantLabels()) {
        self.tenantLabels = tenantLabels
        self.requests = Mutex(
            MetricFamily { key in
                Counter(
                    label: "fcmgw_device_group_requests_total",
                    dimensions: [("tenant", key.tenant), ("action", key.action), ("outcome", key.outcome)],
                    factory: factory
                )
            }
        )
    }

    /// Counts a request by what became of it: `done`, or a refusal's code.
    func count(_ action: GroupAction, of tenant: TenantID, outcome: String) {
        let key = Key(tenant: self.tenantLabels.label(of: tenant), action: action.rawValue, outcome: outcome)
        let counter = self.requests.withLock { requests in
            requests.member(
                of: key,
                in: self.tenantLabels,
                else: Key(tenant: TenantLabels.shared, action: key.action, outcome: outcome)
            )
        }
        counter.increment()
    }
}
