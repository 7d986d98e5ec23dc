package import GatewayCore
import Metrics
import Synchronization

/// What is measured of a store's calls.
package final class StoreMetrics: Sendable {
    /// What a call does; the raw value is the metrics' label.
    enum Operation: String, CaseIterable {
        case read
        /// Reads of long parts, on connections of their own.
        case scan
        case write
    }

    private let up: Meter
    private let logBytes: Meter
    private let durations: [Operation: Timer]
    /// Operations whose last call was not answered.
    private let failing = Mutex<Set<Operation>>([])

    /// Metrics of a store that answers; its kind, such as `sqlite`, is a label.
    package init(store: String, _ metrics: GatewayMetrics) {
        self.up = metrics.gauge(.storeUp, store)
        self.logBytes = metrics.gauge(.storeLogBytes, store)
        self.durations = metrics.timers(.storeCallDuration, by: Operation.self, store)
        self.up.set(1)
    }

    func measured(logBytes: Int) {
        self.logBytes.set(logBytes)
    }

    /// Notes that a call ended, so long after it was asked for, the wait for others included.
    ///
    /// A store counts as up when the last read, scan and write were answered, whatever the answer was.
    func ended(_ operation: Operation, _ failure: GatewayError?, in duration: Duration) {
        self.durations[operation]?.record(duration: duration)
        // A call that its caller gave up says nothing of the store.
        guard failure?.code != .cancelled else { return }
        let isFailing = failure?.code == .storeUnavailable
        self.failing.withLock { failing in
            let isNews = isFailing ? failing.insert(operation).inserted : failing.remove(operation) != nil
            // Under the lock, so that what is shown is what came last.
            if isNews { self.up.set(failing.isEmpty ? 1 : 0) }
        }
    }
}
