import Crypto

/// The end of one writer's chain.
///
/// Pure: it links records and does nothing else.
package struct AuditChain: Sendable, Hashable {
    package let writer: Int
    /// The place of the last record; 0 before the first.
    package private(set) var sequence: Int
    /// The last record's hash, or the writer's own starting value.
    package private(set) var hash: [UInt8]

    /// A chain without records.
    ///
    /// Its start names the writer, so that no chain can stand in for another.
    package init(writer: Int) {
        self.writer = writer
        self.sequence = 0
        self.hash = Array(SHA256.hash(data: Array("fcm-gateway audit chain 1 writer \(writer)".utf8)))
    }

    package init(writer: Int, sequence: Int, hash: [UInt8]) {
        self.writer = writer
        self.sequence = sequence
        self.hash = hash
    }

    /// Moves on to the next record, whose hash is known to follow.
    mutating func advance(to hash: [UInt8]) {
        self.sequence += 1
        self.hash = hash
    }

    package mutating func append(_ record: AuditRecord) -> ChainedAuditRecord {
        self.append(AuditEntry(record))
    }

    package mutating func append(_ entry: AuditEntry) -> ChainedAuditRecord {
        self.append(digest: Self.digest(of: entry, writer: self.writer, sequence: self.sequence + 1))
        return ChainedAuditRecord(writer: self.writer, sequence: self.sequence, entry: entry, hash: self.hash)
    }

    /// The hash of what a record says in its place; it comes first, so that a chain can be shown without what its records
    /// say.
    static func digest(of entry: AuditEntry, writer: Int, sequence: Int) -> [UInt8] {
        var header: [UInt8] = []
        header.reserveCapacity(96)
        AuditCodec.encodeHeader(of: entry, writer: writer, sequence: sequence, to: &header)
        var digest = SHA256()
        digest.update(data: header)
        digest.update(data: entry.body)
        return digest.finalize().bytes
    }

    /// Appends a record of which no more than its digest is known.
    mutating func append(digest: [UInt8]) {
        self.advance(to: SHA256.hash(data: self.hash + digest).bytes)
    }
}

/// A record as it is chained and stored: encoded once, where it is made, and handed on as bytes.
package struct AuditEntry: Sendable, Hashable {
    package let time: Timestamp
    package let tenant: String?
    package let body: [UInt8]

    package init(_ record: AuditRecord) {
        self.time = record.time
        self.tenant = record.tenant
        var body: [UInt8] = []
        body.reserveCapacity(320)
        AuditCodec.encode(record, to: &body)
        self.body = body
    }

    /// A stored entry; `nil` for a body that no record has.
    package init?(time: Timestamp, tenant: String?, body: [UInt8]) {
        guard AuditCodec.decode(body, time: time, tenant: tenant) != nil else { return nil }
        self.time = time
        self.tenant = tenant
        self.body = body
    }

    /// Tells the tenant from earlier and later ones of the same name; 0 without a tenant.
    package var tenantUID: UInt64 {
        self.body[AuditCodec.tenantUIDRange].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// About how much memory it takes, in bytes.
    var byteCount: Int { self.body.count + (self.tenant?.utf8.count ?? 0) + MemoryLayout<AuditEntry>.size }

    package var record: AuditRecord {
        // Every entry was made from a record or checked to have one.
        AuditCodec.decode(self.body, time: self.time, tenant: self.tenant)
            ?? AuditRecord(time: self.time, tenant: nil, principal: "", action: "", outcome: .failed, requestID: "")
    }
}

/// A record's place among all of them.
package struct AuditPosition: Sendable, Hashable {
    package var writer: Int
    package var sequence: Int

    package init(writer: Int, sequence: Int) {
        self.writer = writer
        self.sequence = sequence
    }
}

/// A record in its place in a writer's chain.
package struct ChainedAuditRecord: Sendable, Hashable {
    /// Writers of one store count up from 1.
    package var writer: Int
    /// The place, dense from 1.
    package var sequence: Int
    package var entry: AuditEntry
    /// SHA-256 of the predecessor's hash and this record.
    package var hash: [UInt8]

    package init(writer: Int, sequence: Int, entry: AuditEntry, hash: [UInt8]) {
        self.writer = writer
        self.sequence = sequence
        self.entry = entry
        self.hash = hash
    }

    package var record: AuditRecord {
        get { self.entry.record }
        set { self.entry = AuditEntry(newValue) }
    }
}

/// One stored record as its bytes, as a verifier hashes them.
package struct AuditRow: Sendable {
    package var sequence: Int
    /// Microseconds since 1970.
    package var time: Int64
    package var tenant: [UInt8]?
    package var body: [UInt8]
    package var hash: [UInt8]
    /// Whether every column has a value of the type that the gateway writes.
    package var isReadable: Bool

    package init(sequence: Int, time: Int64, tenant: [UInt8]?, body: [UInt8], hash: [UInt8], isReadable: Bool = true) {
        (self.sequence, self.time, self.tenant) = (sequence, time, tenant)
        (self.body, self.hash, self.isReadable) = (body, hash, isReadable)
    }

    package init(_ record: ChainedAuditRecord) {
        self.init(
            sequence: record.sequence,
            time: record.entry.time.microseconds,
            tenant: record.entry.tenant.map { Array($0.utf8) },
            body: record.entry.body,
            hash: record.hash
        )
    }

    /// The record of the row; one that the gateway would not have written has an empty hash, which no record's is.
    package func record(of writer: Int) -> ChainedAuditRecord {
        let time = Timestamp(microseconds: self.time)
        let tenant = self.tenant.map { String(validating: $0, as: UTF8.self) }
        if self.isReadable, tenant != .some(nil),
            let entry = AuditEntry(time: time, tenant: tenant ?? nil, body: self.body)
        {
            return ChainedAuditRecord(writer: writer, sequence: self.sequence, entry: entry, hash: self.hash)
        }
        let nothing = AuditRecord(time: time, tenant: nil, principal: "", action: "", outcome: .failed, requestID: "")
        return ChainedAuditRecord(writer: writer, sequence: self.sequence, entry: AuditEntry(nothing), hash: [])
    }
}
