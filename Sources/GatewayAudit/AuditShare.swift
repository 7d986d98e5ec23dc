/// One tenant's share of the queue, the spool and the rate of records.
///
/// Half of the queue and half of the spool are the most that one tenant's records take, so that its flood costs no
/// other tenant a place. Its refused requests write 256 KiB a second, with a burst of 2 MiB; those beyond are counted
/// in an ``AuditShare.Summary``.
struct AuditShare: Sendable {
    /// Refused requests of one key that are recorded together: those of a second with the same action and code.
    struct Summary: Sendable {
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

    /// Places in the queue, reserved and filled.
    var records = 0
    /// Bytes of the records in the queue.
    var bytes = 0
    /// Bytes of the records in the spool.
    var spooledBytes = 0
    /// The theoretical arrival time of the bytes that refused requests have written, in nanoseconds since 1970.
    private var refusals: Int64 = 0

    /// The bytes of a record in the store beside its body: its row's head and its places in two indexes.
    private static let rowBytes = 128
    /// The time that one byte takes at 256 KiB a second, and the burst of 2 MiB in such times, in nanoseconds.
    private static let nanosecondsPerByte: Int64 = 1_000_000_000 / (256 << 10)
    private static let burst = Self.nanosecondsPerByte << 21
    /// The most that the last record may reach beyond the burst.
    private static let overdraft: Int64 = 1_000_000_000

    /// Takes a place in the queue; false if the tenant has its share already.
    mutating func reserve(_ configuration: AuditLog.Configuration) -> Bool {
        guard self.records < max(1, configuration.queueRecords / 2), self.bytes < max(1, configuration.queueBytes / 2),
            self.spooledBytes + self.bytes < max(1, configuration.spoolBytes / 2)
        else { return false }
        self.records += 1
        return true
    }

    /// A record without a place in the share enters the queue.
    mutating func enter(_ entry: AuditChain.Entry) {
        self.records += 1
        self.bytes += entry.byteCount
    }

    /// A record has left the queue.
    mutating func leave(_ entry: AuditChain.Entry) {
        self.records -= 1
        self.bytes -= entry.byteCount
    }

    /// True if nothing is lost when the share is forgotten.
    func isWhole(at now: Int64) -> Bool {
        self.records <= 0 && self.spooledBytes == 0 && self.refusals <= now
    }

    mutating func mayWriteRefusals(at now: Int64) -> Bool {
        // Set from a time that the clock was set back from.
        if self.refusals > now + Self.burst + Self.overdraft { self.refusals = now + Self.burst }
        return self.refusals < now + Self.burst
    }

    /// Charges a refused request's record, the last one possibly beyond what is left.
    mutating func chargeRefusal(_ bytes: Int, at now: Int64) {
        self.refusals = max(self.refusals, now) + Int64(bytes + Self.rowBytes) * Self.nanosecondsPerByte
    }
}
