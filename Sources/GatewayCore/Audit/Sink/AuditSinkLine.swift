/// One thing that is written to the audit's second sink.
package enum AuditSinkLine: Sendable, Hashable {
    /// A record in its place.
    case record(ChainedAuditRecord)
    /// Where a chain begins whose oldest records were removed before they could be delivered.
    ///
    /// `ended` tells how the chain ended when nothing of it is left to tell that; a checkpoint vouches for it.
    case cut(AuditCut, ended: AuditHead.State?)
    /// A checkpoint of everything before it.
    case checkpoint(SignedCheckpoint)
}
