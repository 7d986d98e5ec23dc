/// The part of a writer's chain that an export holds.
package struct AuditExportChain: Sendable, Hashable {
    /// The chain's end before the first record.
    package var start: AuditChain
    /// The signed word that all records up to the start were removed, where they were.
    package var cut: AuditCut?
    /// The place of the last record.
    package var through: Int
    /// The sealed end of the whole chain at that time.
    package var head: AuditHead

    /// A part of a chain.
    package init(start: AuditChain, cut: AuditCut? = nil, through: Int, head: AuditHead) {
        (self.start, self.cut, self.through, self.head) = (start, cut, through, head)
    }
}
