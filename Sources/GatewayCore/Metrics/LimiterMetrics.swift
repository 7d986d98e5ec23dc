package import Metrics
import Synchronization

/// What is measured of a limiter's decisions.
package final class LimiterMetrics: Sendable {
    private struct Key: Hashable {
        var scope: LimitScope
        var isAdmitted: Bool
    }

    /// One decision of so many is timed: asking for the time twice would cost as much as the decision.
    static let decisionsPerSample = 16

    private let decisions: Mutex<MetricFamily<Key, Counter>>
    private let durations: Timer
    private let begun = Atomic(0)

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - source: where the quotas are kept, such as `memory`.
    package init(factory: any MetricsFactory, source: String) {
        self.durations = Timer(
            label: "fcmgw_limiter_duration_seconds",
            dimensions: [("source", source)],
            factory: factory
        )
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

    /// Notes that a decision begins.
    ///
    /// - Returns: when it began, if it is one of those that are timed: the first, and then every 16th.
    func began() -> ContinuousClock.Instant? {
        let number = self.begun.wrappingAdd(1, ordering: .relaxed).oldValue
        return number % Self.decisionsPerSample == 0 ? .now : nil
    }

    /// Notes that a timed decision was made.
    func ended(since start: ContinuousClock.Instant) {
        self.durations.record(duration: .now - start)
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
