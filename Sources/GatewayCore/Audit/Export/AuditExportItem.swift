/// A part of an export of the audit.
package enum AuditExportItem: Sendable, Hashable {
    /// What was last signed of all chains; it precedes them.
    case checkpoint(SignedCheckpoint)
    /// What follows is a part of one writer's chain.
    case chain(AuditExportChain)
    /// A record that the recipient may read.
    case record(ChainedAuditRecord)
    /// A record that the recipient may only see the digest of.
    case hidden(HiddenAuditRecord)
}
