/// A place in the audit's queue, taken before something is done so that it can be recorded afterwards.
///
/// A place that is dropped without being used becomes free again.
package struct AuditReservation: ~Copyable, Sendable {
    private let log: AuditLog
    private var isFilled = false

    init(log: AuditLog) {
        self.log = log
    }

    deinit {
        if !self.isFilled { self.log.release() }
    }

    /// Fills the place.
    ///
    /// The record is encoded here, on the thread that made its texts and outside the log's lock.
    package consuming func fill(_ record: AuditRecord) {
        self.isFilled = true
        self.log.fillReserved(AuditEntry(record))
    }
}
