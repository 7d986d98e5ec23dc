/// What one tenant has of what all tenants' records share.
///
/// Half of the queue and half of the spool are the most that one tenant's records take, so that its flood costs no other
/// tenant a place. Its refused requests write 256 KiB a second, with a burst of 2 MiB; those beyond are counted in an
/// ``AuditSummary``.
struct AuditShare: Sendable {
    /// Places in the queue, reserved and filled.
    var records = 0
    /// Bytes of the records in the queue.
    var bytes = 0
    /// Bytes of the records in the spool.
    var spooledBytes = 0
    /// The theoretical arrival time of the bytes that refused requests have written, in nanoseconds since 1970.
    private var refusals: Int64 = 0

    /// What a record takes in the store beside its body: its row's head and its places in two indexes.
    private static let rowBytes = 128
    private static let refusalBytes = RatePolicy(rate: 256 << 10, periodSeconds: 1, burst: 2 << 20).map(GCRA.init)

    /// Takes a place in the queue; false if the tenant has its share already.
    mutating func reserve(_ configuration: AuditConfiguration) -> Bool {
        guard self.records < max(1, configuration.queueRecords / 2), self.bytes < max(1, configuration.queueBytes / 2),
            self.spooledBytes + self.bytes < max(1, configuration.spoolBytes / 2)
        else { return false }
        self.records += 1
        return true
    }

    /// A record without a place in the share enters the queue.
    mutating func enter(_ entry: AuditEntry) {
        self.records += 1
        self.bytes += entry.byteCount
    }

    /// A record has left the queue.
    mutating func leave(_ entry: AuditEntry) {
        self.records -= 1
        self.bytes -= entry.byteCount
    }

    /// True if nothing is lost when the share is forgotten.
    func isWhole(at now: Int64) -> Bool {
        self.records <= 0 && self.spooledBytes == 0 && self.refusals <= now
    }

    mutating func mayWriteRefusals(at now: Int64) -> Bool {
        guard let gcra = Self.refusalBytes else { return true }
        // Stored, so that a time from before the clock was set back does not stand until then.
        self.refusals = gcra.effective(self.refusals, at: now)
        return gcra.available(self.refusals, at: now) > 0
    }

    /// Charges a refused request's record, the last one possibly beyond what is left.
    mutating func chargeRefusal(_ bytes: Int, at now: Int64) {
        if let gcra = Self.refusalBytes { self.refusals = gcra.charged(self.refusals, bytes + Self.rowBytes, at: now) }
    }
}

/// Refused requests of one key that are recorded together: those of a second with the same action and code.
struct AuditSummary: Sendable {
    struct Key: Hashable {
        var tenant: UInt64
        var principal: String
        var action: String
        var code: String?

        init(_ record: AuditRecord) {
            (self.tenant, self.principal) = (record.tenantUID, record.principal)
            (self.action, self.code) = (record.action, record.code)
        }
    }

    /// The first request's record, with the recipients of all and without their pseudonyms.
    private(set) var record: AuditRecord
    private var count = 1

    init(_ record: AuditRecord) {
        self.record = record
        (self.record.targets, self.record.results) = ([], [])
        self.note(record.time)
    }

    mutating func add(_ record: AuditRecord) {
        self.count += 1
        self.record.recipients += record.recipients
        self.note(record.time)
    }

    private mutating func note(_ last: Timestamp) {
        self.record.object = "\(self.count) refused until \(last)"
    }
}
