import Crypto

/// The end of one writer's chain.
///
/// Pure: it links records and does nothing else.
package struct AuditChain: Sendable, Hashable {
    /// Which writer.
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

    /// A chain that goes on from a known end.
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

    /// Appends a record.
    package mutating func append(_ record: AuditRecord) -> ChainedAuditRecord {
        self.append(AuditEntry(record))
    }

    /// Appends a record that is encoded already.
    package mutating func append(_ entry: AuditEntry) -> ChainedAuditRecord {
        self.sequence += 1
        var header: [UInt8] = []
        header.reserveCapacity(96)
        AuditBody.encodeHeader(of: entry, writer: self.writer, sequence: self.sequence, to: &header)
        var digest = SHA256()
        digest.update(data: header)
        digest.update(data: entry.body)
        // The record's own digest comes first, so that a chain can be shown without what its records say.
        self.hash = SHA256.hash(data: self.hash + digest.finalize().bytes).bytes
        return ChainedAuditRecord(writer: self.writer, sequence: self.sequence, entry: entry, hash: self.hash)
    }
}
