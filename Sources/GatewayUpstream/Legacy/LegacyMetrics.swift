package import CoreMetrics
import GatewayCore
import Metrics
import Synchronization

/// What is measured of calls by the legacy protocol.
package final class LegacyMetrics: Sendable {
    private static let api = "legacy"

    private let attempts: MetricFamily<String, Timer>
    private let inflight: Meter
    private let inflightCount = Atomic(0)

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
        self.inflight = Meter(label: "fcmgw_upstream_inflight", dimensions: [("api", Self.api)], factory: factory)
        self.attempts = MetricFamily { outcome in
            Timer(
                label: "fcmgw_upstream_attempt_duration_seconds",
                dimensions: [("api", Self.api), ("outcome", outcome)],
                factory: factory
            )
        }
    }

    /// Notes that an attempt begins.
    func began() {
        self.inflight.set(self.inflightCount.add(1, ordering: .relaxed).newValue)
    }

    /// Notes that an attempt ended, by its outcome: `answered` or the name of what went wrong on the way.
    func ended(outcome: String, in duration: Duration) {
        self.inflight.set(self.inflightCount.subtract(1, ordering: .relaxed).newValue)
        self.attempts[outcome].record(duration: duration)
    }
}
