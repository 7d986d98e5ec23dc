/// What to look for in the audit.
package struct AuditQuery: Sendable, Hashable {
    /// Only this tenant's records.
    package var tenant: String?
    /// Only records at or after this moment.
    package var from: Timestamp?
    /// Only records before this moment.
    package var to: Timestamp?
    /// Only this action.
    package var action: String?
    /// Only this outcome.
    package var outcome: AuditRecord.Outcome?
    /// Only records that have this recipient.
    package var target: Pseudonym?
    /// Only the record of this message.
    package var messageID: String?
    /// How many records at most.
    package var limit: Int
    /// Only records older than this place.
    package var before: AuditPosition?

    /// All records.
    package init(limit: Int) {
        self.limit = limit
    }
}
