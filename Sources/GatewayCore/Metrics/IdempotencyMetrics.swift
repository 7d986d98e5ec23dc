package import Metrics
import Synchronization

/// What is counted of requests that carry an idempotency key.
package final class IdempotencyMetrics: Sendable {
    /// What became of a key.
    enum Result: String, CaseIterable {
        /// Its send was answered for the first time, and the answer is kept.
        case fresh
        /// The kept answer was given again.
        case replay
        /// Another request had the key before.
        case conflict
        /// The first request is still running.
        case inProgress = "in_progress"
        /// A send was taken up that another process had begun.
        case resumed
        /// An answer said of some recipient that nobody knows what became of it.
        case unknown
        /// Nothing was sent, so that the key can be used again.
        case freed
        /// An answer was dropped before its time to make room.
        case evicted
        /// The store did not take or give what is kept of a key.
        case failed
    }

    private let counters: [Result: Counter]

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
        self.counters = Dictionary(
            uniqueKeysWithValues: Result.allCases.map { result in
                (
                    result,
                    Counter(
                        label: "fcmgw_idempotency_total",
                        dimensions: [("result", result.rawValue)],
                        factory: factory
                    )
                )
            }
        )
    }

    /// Counts what became of keys.
    func count(_ result: Result, _ amount: Int = 1) {
        self.counters[result]?.increment(by: amount)
    }
}
