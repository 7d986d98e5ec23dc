/// What to look for in the audit.
package struct AuditQuery: Sendable, Hashable {
    /// Only this tenant's records.
    package var tenant: String?
    /// Only records of the tenant of this name that has this uid, for whom the list is; `nil` for operators' lists.
    package var tenantUID: UInt64?
    /// Only records at or after this moment.
    package var from: Timestamp?
    /// Only records before this moment.
    package var to: Timestamp?
    /// Only this action.
    package var action: String?
    /// Only this outcome.
    package var outcome: AuditRecord.Outcome?
    /// Only this code of a refusal or failure.
    package var code: String?
    /// Only what this principal did; a key may be named by its id alone.
    package var principal: String?
    /// Only records of this request.
    package var requestID: String?
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

    /// Whether a record is one that the query asks for, by all but its tenant, time and place.
    package func matches(_ record: AuditRecord) -> Bool {
        if let action = self.action, record.action != action { return false }
        if let outcome = self.outcome, record.outcome != outcome { return false }
        if let code = self.code, record.code != code { return false }
        if let principal = self.principal, record.principal != principal, record.principal != "key:\(principal)" {
            return false
        }
        if let requestID = self.requestID, record.requestID != requestID { return false }
        if let messageID = self.messageID, record.messageID != messageID { return false }
        guard let target = self.target else { return true }
        return stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount)
            .contains { Pseudonym(bytes: record.targets[$0...].prefix(Pseudonym.byteCount)) == target }
    }
}
