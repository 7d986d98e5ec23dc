package import Metrics
import Synchronization

/// What is counted of a limiter's decisions.
package final class LimiterMetrics: Sendable {
    private struct Key: Hashable {
        var scope: LimitScope
        var isAdmitted: Bool
    }

    private let decisions: Mutex<MetricFamily<Key, Counter>>

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - source: where the quotas are kept, such as `memory`.
    package init(factory: any MetricsFactory, source: String) {
        self.decisions = Mutex(
            MetricFamily { key in
                Counter(
                    label: "fcmgw_limiter_decisions_total",
                    dimensions: [
                        ("scope", key.scope.rawValue), ("decision", key.isAdmitted ? "admitted" : "denied"),
                        ("source", source),
                    ],
                    factory: factory
                )
            }
        )
    }

    /// Counts a decision: once for a whole request, or once for each recipient of one that was admitted in part.
    func count(_ admission: LimitDecision.Admission) {
        switch admission {
        case .all:
            self.count(.tenant, isAdmitted: true)
        case .none(let denial):
            self.count(denial.scope, isAdmitted: false)
        case .some(let denials):
            for denial in denials { self.count(denial?.scope ?? .tenant, isAdmitted: denial == nil) }
        }
    }

    private func count(_ scope: LimitScope, isAdmitted: Bool) {
        self.decisions.withLock { $0.member(of: Key(scope: scope, isAdmitted: isAdmitted)) }.increment()
    }
}
