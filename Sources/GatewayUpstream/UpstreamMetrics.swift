package import CoreMetrics
package import GatewayCore
import Metrics
import Synchronization

/// What is measured of calls by one protocol.
package final class UpstreamMetrics: Sendable {
    private let attempts: Mutex<MetricFamily<String, Timer>>
    private let answered: Timer
    private let inflight: Meter

    /// Metrics of a protocol, made by a factory.
    package convenience init(api: UpstreamKind, factory: any MetricsFactory) {
        self.init(label: api.rawValue, factory: factory)
    }

    /// Metrics of an API by the value of the label `api`, made by a factory.
    package init(label api: String, factory: any MetricsFactory) {
        self.inflight = Meter(label: "fcmgw_upstream_inflight", dimensions: [("api", api)], factory: factory)
        self.attempts = Mutex(
            MetricFamily { outcome in
                Timer(
                    label: "fcmgw_upstream_attempt_duration_seconds",
                    dimensions: [("api", api), ("outcome", outcome)],
                    factory: factory
                )
            }
        )
        self.answered = self.attempts.withLock { $0.member(of: "answered") }
    }

    /// Notes that an attempt begins.
    func began() {
        self.inflight.increment()
    }

    /// Notes that an attempt was answered.
    func answered(in duration: Duration) {
        self.ended(self.answered, in: duration)
    }

    /// Notes that an attempt failed, by the name of what went wrong on the way.
    func failed(_ failure: String, in duration: Duration) {
        self.ended(self.attempts.withLock { $0.member(of: failure) }, in: duration)
    }

    private func ended(_ attempts: Timer, in duration: Duration) {
        self.inflight.decrement()
        attempts.record(duration: duration)
    }
}
