/// One stored record as its bytes, filled anew for each, so that a million of them cost no memory.
package struct AuditRow: Sendable {
    /// The place in the writer's chain.
    package var sequence = 0
    /// Microseconds since 1970.
    package var time: Int64 = 0
    /// Whether a tenant stands in ``tenant``.
    package var hasTenant = false
    /// The tenant's bytes.
    package var tenant: [UInt8] = []
    /// The rest of the record (``AuditBody``).
    package var body: [UInt8] = []
    /// The stored hash.
    package var hash: [UInt8] = []
    /// Whether every column has a value of the type that the gateway writes.
    package var isReadable = false

    /// A row to be filled.
    package init() {}

    /// A record as a row.
    package init(_ record: ChainedAuditRecord) {
        self.sequence = record.sequence
        self.time = record.entry.time.microseconds
        self.hasTenant = record.entry.tenant != nil
        self.tenant = Array((record.entry.tenant ?? "").utf8)
        self.body = record.entry.body
        self.hash = record.hash
        self.isReadable = true
    }
}
