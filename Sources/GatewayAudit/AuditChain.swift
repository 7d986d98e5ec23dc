import Crypto

/// The end of one writer's chain, which the next record follows.
///
/// Pure: it links records and does nothing else.
package struct AuditChain: Sendable, Hashable {
    /// A record's place among all of them.
    package struct Position: Sendable, Hashable {
        /// Writers of one store count up from 1.
        package var writer: Int
        /// The place in the writer's chain, dense from 1.
        package var sequence: Int

        package init(writer: Int, sequence: Int) {
            (self.writer, self.sequence) = (writer, sequence)
        }
    }

    /// A record as it is chained and stored: encoded once, where it is made, and handed on as bytes.
    package struct Entry: Sendable, Hashable {
        package let time: Timestamp
        package let tenant: String?
        package let body: [UInt8]

        package init(_ record: borrowing AuditRecord) {
            self.time = record.time
            self.tenant = record.tenant
            var body: [UInt8] = []
            body.reserveCapacity(320)
            AuditCodec.encode(record, to: &body)
            self.body = body
        }

        /// An entry as it is stored, whether a record has such a body or not.
        package init(time: Timestamp, tenant: String?, body: [UInt8]) {
            (self.time, self.tenant, self.body) = (time, tenant, body)
        }

        package var isReadable: Bool { AuditCodec.decode(self.body, time: self.time, tenant: self.tenant) != nil }

        /// Tells the tenant from earlier and later ones of the same name; 0 without a tenant.
        package var tenantUID: UInt64 { self.body.dropFirst().prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

        /// About how much memory it takes, in bytes.
        var byteCount: Int { self.body.count + (self.tenant?.utf8.count ?? 0) + MemoryLayout<Entry>.size }

        /// The decoded record; an empty one if the body can't be decoded.
        package var record: AuditRecord {
            AuditCodec.decode(self.body, time: self.time, tenant: self.tenant)
                ?? AuditRecord(tenant: nil, at: self.time)
        }
    }

    package let writer: Int
    /// The place of the last record; 0 before the first.
    package private(set) var sequence: Int
    /// The last record's hash, or the writer's own starting value.
    package private(set) var hash: [UInt8]

    /// A chain without records; its start names the writer, so that no chain can stand in for another.
    package init(writer: Int) {
        let start = SHA256.hash(data: Array("fcm-gateway audit chain 1 writer \(writer)".utf8)).bytes
        self.init(writer: writer, sequence: 0, hash: start)
    }

    package init(writer: Int, sequence: Int, hash: [UInt8]) {
        (self.writer, self.sequence, self.hash) = (writer, sequence, hash)
    }

    /// The place of the next record.
    var next: Position { Position(writer: self.writer, sequence: self.sequence &+ 1) }

    package mutating func append(_ record: AuditRecord) -> ChainedAuditRecord {
        self.append(Entry(record))
    }

    package mutating func append(_ entry: Entry) -> ChainedAuditRecord {
        var header: [UInt8] = []
        header.reserveCapacity(96)
        AuditCodec.encodeHeader(of: entry, writer: self.writer, sequence: self.sequence + 1, to: &header)
        var digest = SHA256()
        digest.update(data: header)
        digest.update(data: entry.body)
        self.advance(to: SHA256.hash(data: self.hash + digest.finalize().bytes).bytes)
        return ChainedAuditRecord(writer: self.writer, sequence: self.sequence, entry: entry, hash: self.hash)
    }

    /// Moves on to the next record, whose hash is known to follow.
    mutating func advance(to hash: [UInt8]) {
        self.sequence += 1
        self.hash = hash
    }
}

/// A record in its place in a writer's chain, as it is stored.
package struct ChainedAuditRecord: Sendable, Hashable {
    package var writer: Int
    package var sequence: Int
    package var entry: AuditChain.Entry
    /// SHA-256 of the predecessor's hash and this record; empty, as no record's is, where what is stored can't be read.
    package var hash: [UInt8]

    package init(writer: Int, sequence: Int, entry: AuditChain.Entry, hash: [UInt8]) {
        (self.writer, self.sequence, self.entry, self.hash) = (writer, sequence, entry, hash)
    }

    package var position: AuditChain.Position { AuditChain.Position(writer: self.writer, sequence: self.sequence) }

    package var record: AuditRecord {
        get { self.entry.record }
        set { self.entry = AuditChain.Entry(newValue) }
    }
}

extension Sequence {
    /// The elements by a key; of those with the same key, the first.
    func keyed<Key: Hashable>(by key: (Element) -> Key) -> [Key: Element] {
        Dictionary(self.map { (key($0), $0) }, uniquingKeysWith: { first, _ in first })
    }
}
