package import Metrics

/// What is measured of the audit's writer.
package final class AuditMetrics: Sendable {
    private let written: Counter
    private let refused: Counter
    private let spooled: Counter
    private let spoolBytes: Meter
    private let duration: Timer
    private let queue: Meter

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
        self.written = Counter(
            label: "fcmgw_audit_records_total",
            dimensions: [("result", "written")],
            factory: factory
        )
        self.refused = Counter(
            label: "fcmgw_audit_records_total",
            dimensions: [("result", "refused")],
            factory: factory
        )
        self.spooled = Counter(
            label: "fcmgw_audit_records_total",
            dimensions: [("result", "spooled")],
            factory: factory
        )
        self.spoolBytes = Meter(label: "fcmgw_audit_spool_bytes", factory: factory)
        self.duration = Timer(
            label: "fcmgw_audit_write_duration_seconds",
            dimensions: [("result", "written")],
            factory: factory
        )
        self.queue = Meter(label: "fcmgw_audit_queue_records", factory: factory)
    }

    /// Notes how many records wait to be written.
    func queued(_ count: Int) {
        self.queue.set(count)
    }

    /// Counts records that became durable together.
    func wrote(_ count: Int, in duration: Duration) {
        self.written.increment(by: count)
        self.duration.record(duration: duration)
    }

    /// Counts records that the store refused, once for each attempt.
    func failed(_ count: Int) {
        self.refused.increment(by: count)
    }

    /// Counts records that went to the spool, and notes how many bytes of it the store does not have.
    func spooled(_ count: Int, bytes: Int) {
        if count > 0 { self.spooled.increment(by: count) }
        self.spoolBytes.set(bytes)
    }
}
