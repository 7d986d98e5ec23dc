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

extension StoreMetrics? {
    /// Runs a call, and notes when and how it ended; what a driver throws is translated into an error of the gateway's.
    func measured<T: Sendable>(
        _ operation: StoreMetrics.Operation,
        translating translate: (any Error) -> GatewayError,
        _ body: () async throws -> T
    ) async throws(GatewayError) -> T {
        let start = ContinuousClock.now
        do {
            let value = try await body()
            self?.ended(operation, nil, in: .now - start)
            return value
        } catch {
            let error = translate(error)
            self?.ended(operation, error, in: .now - start)
            throw error
        }
    }
}

/// What is measured of a PostgreSQL's connections, transactions and lead; no other store has these metrics.
final class PostgreSQLMetrics: Sendable {
    /// Whether a call has a connection; the raw value is the metrics' label.
    private enum ConnectionState: String, CaseIterable {
        case busy, idle
    }

    /// What got in a transaction's way, so that it was run again; the raw value is the metrics' label.
    enum RetryReason: String, CaseIterable {
        case serialization, deadlock
    }

    private let connections: [ConnectionState: Meter]
    private let waiters: Meter
    private let retries: [RetryReason: Counter]
    private let commitsUnknown: Counter
    private let leader: Meter

    init(_ metrics: GatewayMetrics) {
        self.connections = metrics.gauges(.storeConnections, by: ConnectionState.self)
        self.waiters = metrics.gauge(.storePoolWaiters)
        self.retries = metrics.counters(.storeRetries, by: RetryReason.self)
        self.commitsUnknown = metrics.counter(.storeCommitsUnknown)
        self.leader = metrics.gauge(.leader)
        self.leader.set(0)
    }

    /// Notes how many connections calls have, how many they may still have, and how many calls wait for one.
    func measured(busy: Int, idle: Int, waiting: Int) {
        self.connections[.busy]?.set(busy)
        self.connections[.idle]?.set(idle)
        self.waiters.set(waiting)
    }

    func measured(leads: Bool) {
        self.leader.set(leads ? 1 : 0)
    }

    func retried(_ reason: RetryReason) {
        self.retries[reason]?.increment()
    }

    func lostOutcome() {
        self.commitsUnknown.increment()
    }
}
