package import GatewayCore
import Metrics
import Synchronization

/// The metrics of a store's calls.
package final class StoreMetrics: Sendable {
    /// The kind of a call. The raw value is the metrics' label.
    enum Operation: String, CaseIterable {
        case read
        /// A long read, on its own connections.
        case scan
        case write
    }

    private let up: Meter
    private let logBytes: Meter
    private let durations: [Operation: Timer]
    /// Operations whose last call failed.
    private let failing = Mutex<Set<Operation>>([])

    /// Metrics of a store that answers. Its kind, such as `sqlite`, is a label.
    package init(store: String, _ metrics: GatewayMetrics) {
        self.up = metrics.gauge(.storeUp, store)
        self.logBytes = metrics.gauge(.storeLogBytes, store)
        self.durations = metrics.timers(.storeCallDuration, by: Operation.self, store)
        self.up.set(1)
    }

    func measured(logBytes: Int) {
        self.logBytes.set(logBytes)
    }

    /// Records the end of a call, and its duration with the wait for other calls.
    ///
    /// A store counts as up if it answered the last read, scan and write, with any result.
    func ended(_ operation: Operation, _ failure: GatewayError?, in duration: Duration) {
        self.durations[operation]?.recordNanoseconds(duration.nanoseconds)
        // A call that its caller cancelled says nothing about the store.
        guard failure?.code != .cancelled else { return }
        let isFailing = failure?.code == .storeUnavailable
        self.failing.withLock { failing in
            let isNews = isFailing ? failing.insert(operation).inserted : failing.remove(operation) != nil
            // Set under the lock, so that the metric shows the latest state.
            if isNews { self.up.set(failing.isEmpty ? 1 : 0) }
        }
    }
}

extension StoreMetrics? {
    /// Runs a call and records its duration and outcome. Translates a driver's error into a `GatewayError`.
    func measured<T: Sendable>(
        _ operation: StoreMetrics.Operation,
        translating translate: (any Error) -> GatewayError,
        _ body: () async throws -> T
    ) async throws(GatewayError) -> T {
        let start = Uptime.now
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

/// The metrics of PostgreSQL's connections, transactions and lead. No other store has them.
final class PostgreSQLMetrics: Sendable {
    /// The state of a pool's connection. The raw value is the metrics' label.
    private enum ConnectionState: String, CaseIterable {
        case busy, idle
    }

    /// The conflict after which a transaction was run again. The raw value is the metrics' label.
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

    /// Records how many connections are in use and idle, and how many calls wait for one.
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
