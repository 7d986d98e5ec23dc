import Crypto

extension AuditChain {
    /// The hash of what a record says in its place, from which the chain's hash is made.
    static func digest(of entry: AuditEntry, writer: Int, sequence: Int) -> [UInt8] {
        var header: [UInt8] = []
        AuditBody.encodeHeader(of: entry, writer: writer, sequence: sequence, to: &header)
        var digest = SHA256()
        digest.update(data: header)
        digest.update(data: entry.body)
        return digest.finalize().bytes
    }

    /// Appends a record of which no more than its digest is known.
    mutating func append(digest: [UInt8]) {
        self = AuditChain(
            writer: self.writer,
            sequence: self.sequence + 1,
            hash: SHA256.hash(data: self.hash + digest).bytes
        )
    }
}
