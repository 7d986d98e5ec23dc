package import CoreMetrics
import GatewayCore
import Metrics
import Synchronization

/// Why a call is repeated; the raw value is the metrics' label.
enum RepeatReason: String, Sendable, CaseIterable {
    /// Nothing was sent.
    case notSent = "not_sent"
    /// FCM said that it is in trouble.
    case trouble = "upstream_5xx"
}

/// What is counted of repeats and breakers.
package final class ResilienceMetrics: Sendable {
    /// Tenants that have a label of their own; the others share one.
    private static let maxProjects = 200

    private let repeats: [RepeatReason: Counter]
    private let exhaustions: [RepeatReason: Counter]
    private let factory: any MetricsFactory
    private let projects = Mutex<Set<String>>([])

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
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

    /// The gauge of a tenant's breaker.
    func gauge(of tenant: TenantID, api: UpstreamKind) -> BreakerGauge {
        let isKnown = self.projects.withLock { projects in
            if projects.contains(tenant.text) { return true }
            guard projects.count < Self.maxProjects else { return false }
            projects.insert(tenant.text)
            return true
        }
        // Shared by several, a state would say nothing of any.
        guard isKnown else { return BreakerGauge(meter: nil) }
        return BreakerGauge(
            meter: Meter(
                label: "fcmgw_breaker_state",
                dimensions: [("api", api.rawValue), ("project", tenant.text)],
                factory: self.factory
            )
        )
    }
}

/// Shows what one breaker is in: 0 closed, 1 letting some calls through, 2 open.
struct BreakerGauge: Sendable {
    let meter: Meter?

    func set(_ condition: CircuitBreaker.Condition) {
        self.meter?.set(condition.rawValue)
    }
}
