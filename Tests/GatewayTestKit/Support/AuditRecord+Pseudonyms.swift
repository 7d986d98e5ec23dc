package import GatewayCore

extension AuditRecord {
    /// The recipients' pseudonyms, taken apart.
    package var pseudonyms: [Pseudonym] {
        stride(from: 0, to: self.targets.count, by: Pseudonym.byteCount)
            .map { Pseudonym(bytes: self.targets[$0...].prefix(Pseudonym.byteCount)) }
    }
}
