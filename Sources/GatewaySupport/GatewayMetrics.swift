package import Metrics
import Synchronization

/// Makes the handles of ``GatewayMetric``'s rows.
///
/// Each part makes its handles once, when it is created. Labels' values come from bounded sets: enumerations, a
/// ``MetricFamily`` that folds callers' values, and ``GatewayMetrics.TenantLabels``, which all metrics of a gateway
/// share.
package struct GatewayMetrics: Sendable {
    /// Bounds the labels that name tenants: the first 200 tenants have their own, and all others share one.
    ///
    /// All metrics of a gateway share this object, so that they name the same tenants and are bounded together. A label
    /// belongs to its tenant until the process ends.
    package final class TenantLabels: Sendable {
        /// The label of all tenants without their own, and of shared values.
        package static let shared = "other"
        package static let maxLabels = 200
        /// The series that tenants may have of their own, over all metrics with more labels than the tenant.
        private static let maxSeries = 600

        private let known = Mutex<Set<String>>([])
        private let seriesCount = Atomic(0)

        /// A tenant's label: its own, or the shared one for a tenant beyond the bound, and for a tenant with the shared
        /// label's name.
        package func label(of tenant: String) -> String {
            guard tenant != Self.shared else { return Self.shared }
            let isKnown = self.known.withLock { known in
                if known.contains(tenant) { return true }
                guard known.count < Self.maxLabels else { return false }
                known.insert(tenant)
                return true
            }
            return isKnown ? tenant : Self.shared
        }

        package func takeRoom() -> Bool {
            guard self.seriesCount.load(ordering: .relaxed) < Self.maxSeries else { return false }
            return self.seriesCount.wrappingAdd(1, ordering: .relaxed).oldValue < Self.maxSeries
        }
    }

    package typealias Label = CaseIterable & Hashable & RawRepresentable<String>

    private let factory: any MetricsFactory
    package let tenantLabels = TenantLabels()

    /// Metrics from a factory. Without one, nothing is measured.
    package init(factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        self.factory = factory
    }

    // MARK: One handle, by the values of its labels

    package func counter(_ metric: GatewayMetric, _ values: String...) -> Counter { self.counter(metric, values) }

    package func gauge(_ metric: GatewayMetric, _ values: String...) -> Meter { self.gauge(metric, values) }

    package func timer(_ metric: GatewayMetric, _ values: String...) -> Timer { self.timer(metric, values) }

    // MARK: A handle for each value of the first label, an enumeration; the other labels have one value each

    package func counters<Value: Label>(
        _ metric: GatewayMetric,
        by: Value.Type,
        _ others: String...
    ) -> [Value: Counter] {
        Self.byValue { self.counter(metric, [$0] + others) }
    }

    package func gauges<Value: Label>(_ metric: GatewayMetric, by: Value.Type) -> [Value: Meter] {
        Self.byValue { self.gauge(metric, [$0]) }
    }

    package func timers<Value: Label>(_ metric: GatewayMetric, by: Value.Type, _ others: String...) -> [Value: Timer] {
        Self.byValue { self.timer(metric, [$0] + others) }
    }

    private static func byValue<Value: Label, Handle>(_ make: (String) -> Handle) -> [Value: Handle] {
        Dictionary(uniqueKeysWithValues: Value.allCases.map { ($0, make($0.rawValue)) })
    }

    // MARK: Making

    package func counter(_ metric: GatewayMetric, _ values: [String]) -> Counter {
        guard case .counter = metric.row.kind else { preconditionFailure("\(metric.rawValue) is not a counter") }
        return Counter(label: metric.rawValue, dimensions: metric.dimensions(values), factory: self.factory)
    }

    package func gauge(_ metric: GatewayMetric, _ values: [String]) -> Meter {
        guard case .gauge = metric.row.kind else { preconditionFailure("\(metric.rawValue) is not a gauge") }
        return Meter(label: metric.rawValue, dimensions: metric.dimensions(values), factory: self.factory)
    }

    package func timer(_ metric: GatewayMetric, _ values: [String]) -> Timer {
        guard case .histogram = metric.row.kind else { preconditionFailure("\(metric.rawValue) is not a histogram") }
        return Timer(label: metric.rawValue, dimensions: metric.dimensions(values), factory: self.factory)
    }
}

extension GatewayMetric {
    fileprivate func dimensions(_ values: [String]) -> [(String, String)] {
        let labels = self.row.labels
        precondition(labels.count == values.count, "\(self.rawValue) has the labels \(labels); values: \(values)")
        return Array(zip(labels, values))
    }
}

extension Meter {
    package func set(_ time: Timestamp) {
        self.set(Double(time.microseconds) / 1_000_000)
    }
}
