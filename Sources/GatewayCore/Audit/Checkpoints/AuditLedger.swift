/// What a store keeps about its audit's chains, apart from their records and ends.
package struct AuditLedger: Sendable, Hashable {
    /// The checkpoints that are kept, by rising number.
    package var checkpoints: [SignedCheckpoint]
    /// Which checkpoint is the latest; `nil` before the first.
    package var end: CheckpointEnd?
    /// Where chains begin whose oldest records were removed, by rising writer.
    package var cuts: [AuditCut]

    /// A ledger; without anything in it, that of a store from before there were checkpoints.
    package init(checkpoints: [SignedCheckpoint] = [], end: CheckpointEnd? = nil, cuts: [AuditCut] = []) {
        (self.checkpoints, self.end, self.cuts) = (checkpoints, end, cuts)
    }
}
