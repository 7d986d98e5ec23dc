/// A whole chain of records that is written at once: what a command did to the store directly.
///
/// It is closed when it appears, so it never counts as a process that ended uncleanly, and it stands beside the chain of
/// a gateway that is running.
package struct AuditEpisode: Sendable {
    /// The records in their places: the chain's begin, what was done, its end.
    package let records: [ChainedAuditRecord]
    /// The chain's sealed end.
    package let head: AuditHead

    /// A chain that tells of one thing that was done.
    ///
    /// - Parameters:
    ///   - record: what was done, by whom and when.
    ///   - writer: the chain's number, which no other has.
    ///   - sealer: seals the end.
    package init(_ record: AuditRecord, writer: Int, sealer: AuditSealer) {
        func own(_ action: AuditAction) -> AuditRecord {
            AuditRecord(
                time: record.time,
                tenant: nil,
                principal: record.principal,
                action: action.rawValue,
                outcome: .done,
                requestID: ""
            )
        }
        var chain = AuditChain(writer: writer)
        self.records = [own(.auditOpened), record, own(.auditClosed)].map { chain.append($0) }
        self.head = sealer.head(of: chain, state: .closed)
    }
}
