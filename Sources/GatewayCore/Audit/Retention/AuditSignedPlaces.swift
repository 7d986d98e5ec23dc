/// Finds places of chains that checkpoints sign, so that the records before them can be relied on.
///
/// Pure.
struct AuditSignedPlaces {
    private let checkpoints: [SignedCheckpoint]
    private let publicKey: AuditPublicKey

    /// The places that checkpoints sign.
    ///
    /// - Parameters:
    ///   - checkpoints: as they are stored, by rising number.
    ///   - publicKey: tells which are genuine.
    init(_ checkpoints: [SignedCheckpoint], _ publicKey: AuditPublicKey) {
        self.checkpoints = checkpoints
        self.publicKey = publicKey
    }

    /// The first place of a chain from another one on that is signed; `nil` for none.
    func first(of writer: Int, from sequence: Int) -> AuditLandmark? {
        // Chains only grow, so half of them can be passed over each time. What somebody has changed leads astray at
        // worst, and is not taken for genuine in the end.
        var (low, high) = (0, self.checkpoints.count)
        while low < high {
            let middle = low + (high - low) / 2
            if Self.reaches(sequence, of: writer, self.checkpoints[middle].content) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        guard low < self.checkpoints.count else { return nil }
        let found = self.checkpoints[low]
        guard let head = found.content?.heads.first(where: { $0.writer == writer }), head.sequence >= sequence,
            self.publicKey.isGenuine(found.signature, of: found.text)
        else { return nil }
        return AuditLandmark(sequence: head.sequence, hash: head.hash, source: .checkpoint(found.number))
    }

    private static func reaches(_ sequence: Int, of writer: Int, _ content: AuditCheckpoint?) -> Bool {
        guard let content else { return false }
        if content.settledWriter >= writer { return true }
        return content.heads.contains { $0.writer == writer && $0.sequence >= sequence }
    }
}
