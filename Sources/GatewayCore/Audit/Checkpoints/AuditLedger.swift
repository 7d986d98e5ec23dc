/// What a store keeps about its audit's chains, apart from their records and ends.
package struct AuditLedger: Sendable, Hashable {
    /// The checkpoints that are kept, by rising number.
    package var checkpoints: [SignedCheckpoint]
    /// Which checkpoint is the latest; `nil` before the gateway's secrets were made.
    package var end: CheckpointEnd?
    /// Where chains begin whose oldest records were removed, by rising writer.
    package var cuts: [AuditCut]
    /// Whether the store has secrets of the gateway or tenants, which come after ``end``.
    package var isInUse: Bool
    /// A tenant of whom there is no record, in an audit of which no records were removed by age; `nil` for none.
    package var unrecordedTenant: String?

    /// A ledger; without anything in it, that of a store that no gateway has used.
    package init(
        checkpoints: [SignedCheckpoint] = [],
        end: CheckpointEnd? = nil,
        cuts: [AuditCut] = [],
        isInUse: Bool = false,
        unrecordedTenant: String? = nil
    ) {
        (self.checkpoints, self.end, self.cuts) = (checkpoints, end, cuts)
        (self.isInUse, self.unrecordedTenant) = (isInUse, unrecordedTenant)
    }

    /// Whether it is that of a store for which no checkpoint was ever made.
    package var isNew: Bool {
        guard self.checkpoints.isEmpty, self.cuts.isEmpty else { return false }
        return self.end.map { $0.number == 0 } ?? !self.isInUse
    }
}
