/// How the row of stored checkpoints stands, to go on with it.
///
/// Pure. It asks the row's end alone; what lies before it is asked when some of it is to be removed, and by whoever
/// verifies.
struct AuditCheckpointRow {
    /// Numbers from here on are none that a gateway gets to; somebody may have written any.
    private static let limit = 1 << 48

    /// The latest checkpoint that is genuine; `nil` for none.
    let latest: SignedCheckpoint?
    /// Whether that is the latest that there was, as far as it can be told.
    let isWhole: Bool
    /// The number of the checkpoint that is to follow.
    ///
    /// In a row that isn't whole one number is left out behind all that are known of, so that the row shows it for as
    /// long as it is kept.
    let next: Int
    /// The genuine checkpoint that is the last before ``next`` of those that are kept for good.
    let anchor: SignedCheckpoint?

    /// Looks at a row.
    ///
    /// - Parameters:
    ///   - ledger: the stored checkpoints, their end, and the cuts.
    ///   - claimed: the latest checkpoint after which a chain is known to have begun; 0 for none.
    ///   - publicKey: tells what is genuine.
    init(_ ledger: AuditLedger, claimed: Int, _ publicKey: AuditPublicKey) {
        func isGenuine(_ checkpoint: SignedCheckpoint) -> Bool {
            publicKey.isGenuine(checkpoint.signature, of: checkpoint.text)
                && checkpoint.content?.number == checkpoint.number
        }
        let latest = ledger.checkpoints.last(where: isGenuine)
        let last = latest?.number ?? 0
        let isGenuineEnd = ledger.end.map { publicKey.isGenuine($0.signature, of: $0.text) }
        let isEnd =
            if let latest, let end = ledger.end {
                latest == ledger.checkpoints.last && end.number == last && end.digest == latest.digest
                    && isGenuineEnd == true
            } else {
                ledger.isNew && isGenuineEnd != false
            }
        self.latest = latest
        self.isWhole = isEnd && claimed <= last && ledger.unrecordedTenant == nil
        if self.isWhole {
            self.next = last + 1
        } else {
            let named = ledger.checkpoints.map(\.number) + [ledger.end?.number ?? 0, claimed]
            self.next = (named.filter { $0 < Self.limit } + [last]).reduce(0, max) + 2
        }
        let anchorNumber = AuditCheckpoint.anchorNumber(before: self.next)
        self.anchor = ledger.checkpoints.last { $0.number == anchorNumber }.flatMap { isGenuine($0) ? $0 : nil }
    }
}
