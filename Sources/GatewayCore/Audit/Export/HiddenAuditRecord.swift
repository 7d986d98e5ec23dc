/// A record without what it says.
package struct HiddenAuditRecord: Sendable, Hashable {
    /// Which writer.
    package var writer: Int
    /// The place in its chain.
    package var sequence: Int
    /// SHA-256 of what the record says in its place.
    package var digest: [UInt8]
    /// The chain's hash behind it.
    package var hash: [UInt8]

    /// A record's place and hashes.
    package init(writer: Int, sequence: Int, digest: [UInt8], hash: [UInt8]) {
        self.writer = writer
        self.sequence = sequence
        self.digest = digest
        self.hash = hash
    }
}
