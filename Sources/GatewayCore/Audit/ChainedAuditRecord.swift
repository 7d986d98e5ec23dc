/// A record in its place in a writer's chain.
package struct ChainedAuditRecord: Sendable, Hashable {
    /// Which writer; writers of one store count up from 1.
    package var writer: Int
    /// The place, dense from 1.
    package var sequence: Int
    /// The record as it is stored.
    package var entry: AuditEntry
    /// SHA-256 of the predecessor's hash and this record.
    package var hash: [UInt8]

    /// A record in its place.
    package init(writer: Int, sequence: Int, entry: AuditEntry, hash: [UInt8]) {
        self.writer = writer
        self.sequence = sequence
        self.entry = entry
        self.hash = hash
    }

    /// The record.
    package var record: AuditRecord {
        get { self.entry.record }
        set { self.entry = AuditEntry(newValue) }
    }
}
