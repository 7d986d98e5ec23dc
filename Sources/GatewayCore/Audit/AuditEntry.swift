/// A record as it is chained and stored: encoded once, where it is made, and handed on as bytes.
package struct AuditEntry: Sendable, Hashable {
    /// When.
    package let time: Timestamp
    /// The tenant concerned, if any.
    package let tenant: String?
    /// The rest of the record (``AuditBody``).
    package let body: [UInt8]

    /// The entry of a record.
    package init(_ record: AuditRecord) {
        self.time = record.time
        self.tenant = record.tenant
        var body: [UInt8] = []
        body.reserveCapacity(320)
        AuditBody.encode(record, to: &body)
        self.body = body
    }

    /// A stored entry; `nil` for a body that no record has.
    package init?(time: Timestamp, tenant: String?, body: [UInt8]) {
        guard AuditBody.decode(body, time: time, tenant: tenant) != nil else { return nil }
        self.time = time
        self.tenant = tenant
        self.body = body
    }

    /// Tells the tenant from earlier and later ones of the same name; 0 without a tenant.
    package var tenantUID: UInt64 {
        self.body[AuditBody.tenantUIDRange].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// About how much memory it takes, in bytes.
    var byteCount: Int { self.body.count + (self.tenant?.utf8.count ?? 0) + MemoryLayout<AuditEntry>.size }

    /// The record.
    package var record: AuditRecord {
        // Every entry was made from a record or checked to have one.
        AuditBody.decode(self.body, time: self.time, tenant: self.tenant)
            ?? AuditRecord(time: self.time, tenant: nil, principal: "", action: "", outcome: .failed, requestID: "")
    }
}
