import Crypto

/// A record in its place in a writer's chain.
package struct ChainedAuditRecord: Sendable, Hashable {
    /// Which writer; writers of one store count up from 1.
    package var writer: Int
    /// The place, dense from 1.
    package var sequence: Int
    /// The record.
    package var record: AuditRecord
    /// The record's bytes without its time and tenant (``AuditBody``).
    package var body: ArraySlice<UInt8>
    /// SHA-256 of the predecessor's hash and this record.
    package var hash: [UInt8]

    /// A record in its place.
    package init(writer: Int, sequence: Int, record: consuming AuditRecord, hash: [UInt8]) {
        var body: [UInt8] = []
        AuditBody.encode(record, to: &body)
        self.init(writer: writer, sequence: sequence, record: record, body: body[...], hash: hash)
    }

    /// A record in its place, whose body is known.
    package init(
        writer: Int,
        sequence: Int,
        record: consuming AuditRecord,
        body: ArraySlice<UInt8>,
        hash: [UInt8]
    ) {
        self.writer = writer
        self.sequence = sequence
        self.record = record
        self.body = body
        self.hash = hash
    }
}

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

    /// Appends a record.
    package mutating func append(_ record: consuming AuditRecord) -> ChainedAuditRecord {
        self.sequence += 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(384)
        AuditBody.encodeHeader(of: record, writer: self.writer, sequence: self.sequence, to: &bytes)
        let bodyStart = bytes.count
        AuditBody.encode(record, to: &bytes)
        // The record's own digest comes first, so that a chain can be shown without what its records say.
        self.hash = SHA256.hash(data: self.hash + SHA256.hash(data: bytes).bytes).bytes
        return ChainedAuditRecord(
            writer: self.writer,
            sequence: self.sequence,
            record: record,
            body: bytes[bodyStart...],
            hash: self.hash
        )
    }
}
