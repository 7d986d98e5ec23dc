/// Some of the records that a query found.
package struct AuditPage: Sendable, Hashable {
    /// The records, newest first.
    package var records: [ChainedAuditRecord]
    /// Where the next page goes on; `nil` at the end.
    package var next: AuditPosition?

    /// A page.
    package init(records: [ChainedAuditRecord], next: AuditPosition?) {
        self.records = records
        self.next = next
    }
}
