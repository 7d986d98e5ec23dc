package import Metrics

/// What is measured of the audit's checkpoints and of the second sink.
package final class AuditCheckpointMetrics: Sendable {
    private let changed: Meter
    private let covered: Meter
    /// Never changed, and held as long as the others.
    private let interval: Meter
    private let delivered: Meter?
    private let checkpointFailures: Counter
    private let sinkFailures: Counter?
    private let removed: Counter

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - hasSink: whether there is a second sink to measure.
    ///   - interval: how long a checkpoint follows the one before at the latest.
    package init(factory: any MetricsFactory, hasSink: Bool, interval: Duration) {
        self.interval = Meter(label: "fcmgw_audit_checkpoint_interval_seconds", factory: factory)
        self.interval.set(interval / .seconds(1))
        self.changed = Meter(label: "fcmgw_audit_changed", factory: factory)
        self.changed.set(0)
        self.covered = Meter(label: "fcmgw_audit_last_checkpoint_timestamp_seconds", factory: factory)
        self.checkpointFailures = Counter(label: "fcmgw_audit_checkpoint_failures_total", factory: factory)
        self.removed = Counter(label: "fcmgw_audit_records_removed_total", factory: factory)
        // Without a sink, a gauge that stands at zero would look like one that has had nothing for fifty years.
        self.delivered =
            hasSink ? Meter(label: "fcmgw_audit_sink_delivered_timestamp_seconds", factory: factory) : nil
        self.sinkFailures = hasSink ? Counter(label: "fcmgw_audit_sink_failures_total", factory: factory) : nil
    }

    /// Notes that the stored audit is not what was written; nothing takes that back in this process.
    func foundChange() {
        self.changed.set(1)
    }

    /// Notes the moment up to which all that is stored is under a checkpoint.
    func covered(at time: Timestamp) {
        self.covered.set(Double(time.microseconds) / 1_000_000)
    }

    /// Counts an attempt to make a checkpoint that failed.
    func checkpointFailed() {
        self.checkpointFailures.increment()
    }

    /// Notes the moment up to which the second sink has all.
    func delivered(at time: Timestamp) {
        self.delivered?.set(Double(time.microseconds) / 1_000_000)
    }

    /// Counts an attempt to write to the second sink that failed.
    func sinkFailed() {
        self.sinkFailures?.increment()
    }

    /// Counts records that retention removed.
    func removed(_ count: Int) {
        self.removed.increment(by: count)
    }
}
