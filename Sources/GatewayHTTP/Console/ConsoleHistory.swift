import GatewayCore
import Synchronization

/// The last hour of this replica's sends, by the minute, for the console's charts.
///
/// It reads the metrics each minute, which bound the tenants that they name. Prometheus has longer times and all replicas.
package final class ConsoleHistory: Sendable {
    /// Recipients of sends.
    struct Counts: Sendable, Equatable {
        var accepted = 0
        var others = 0
    }

    /// Counters since the start of the process.
    struct Totals: Sendable {
        var sum = Counts()
        var tenants: [String: Counts] = [:]
        /// Calls to FCM by their time, cumulative, by the bucket's upper bound in seconds.
        var calls: [Double: Double] = [:]
    }

    static let minutes = 60
    private static let names: Set<Substring> = [
        "fcmgw_messages_total", "fcmgw_upstream_attempt_duration_seconds_bucket",
    ]

    private let exposition: MetricsExposition
    /// One more reading than minutes, the oldest one first.
    private let readings = Mutex<[(at: Uptime, totals: Totals)]>([])

    package init(_ exposition: MetricsExposition) {
        self.exposition = exposition
    }

    /// Reads the metrics each minute until the task is cancelled.
    package func run() async {
        repeat { self.read(at: .now) } while (try? await Task.sleep(for: .seconds(60))) != nil
    }

    /// Ends a minute.
    func read(at now: Uptime) {
        let totals = Totals(
            MetricsReading(String(decoding: self.exposition.render(), as: UTF8.self), names: Self.names)
        )
        self.readings.withLock { readings in
            readings.append((now, totals))
            if readings.count > Self.minutes + 1 { readings.removeFirst() }
        }
    }

    /// The minutes of a tenant, or of all tenants together, the latest one last.
    func minutes(of tenant: String?) -> [Counts] {
        let counts = self.readings.withLock { readings in
            readings.map { reading in tenant.map { reading.totals.tenants[$0] ?? Counts() } ?? reading.totals.sum }
        }
        return zip(counts, counts.dropFirst())
            .map { Counts(accepted: $1.accepted - $0.accepted, others: $1.others - $0.others) }
    }

    /// The totals of some minutes ago, or of the first reading, and their age.
    func earlier(than now: Uptime) -> (totals: Totals, age: Duration)? {
        self.readings.withLock { $0.suffix(6).first.map { ($0.totals, now - $0.at) } }
    }
}

extension ConsoleHistory.Totals {
    init(_ reading: MetricsReading) {
        for sample in reading["fcmgw_messages_total"] {
            let part: WritableKeyPath<ConsoleHistory.Counts, Int> =
                sample.labels["outcome"] == "accepted" ? \.accepted : \.others
            self.sum[keyPath: part] += Int(sample.value)
            self.tenants[sample.labels["tenant"] ?? "", default: .init()][keyPath: part] += Int(sample.value)
        }
        for (bound, count) in reading.sums("fcmgw_upstream_attempt_duration_seconds_bucket", by: "le") {
            self.calls[bound == "+Inf" ? .infinity : Double(bound) ?? .infinity, default: 0] += count
        }
    }

    /// The bound of the bucket with this part of the calls since earlier totals; `nil` without calls.
    func latency(_ part: Double, since earlier: Self) -> Double? {
        let counts = self.calls.map { ($0.key, $0.value - (earlier.calls[$0.key] ?? 0)) }.sorted { $0.0 < $1.0 }
        guard let all = counts.last?.1, all > 0 else { return nil }
        return counts.first { $0.1 >= part * all }?.0
    }
}
