import FCMModel

extension AuditRecord {
    /// The record of something done to a device group.
    ///
    /// - Parameters:
    ///   - action: what was done.
    ///   - name: the group's name, or its key where a caller named no more; `nil` for a list of names.
    ///   - tokens: the tokens it was about.
    ///   - caller: who did it.
    ///   - refusal: why it was not done, if it was not.
    ///   - upstreamCode: what FCM said last, if it was asked.
    ///   - time: when the gateway took the request.
    /// - Returns: the record; name and tokens are in it by pseudonym.
    static func group(
        _ action: GroupAction,
        _ name: String?,
        tokens: [String],
        by caller: GroupCaller,
        refusal: OutcomeCode?,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        var record = AuditRecord(
            time: time,
            tenant: caller.profile.id.text,
            principal: caller.principal.auditName,
            action: action.rawValue,
            outcome: refusal == nil ? .accepted : .rejected,
            requestID: caller.origin.requestID
        )
        record.tenantUID = caller.profile.uid
        record.method = caller.origin.method
        record.targetKind = TargetKind.group.rawValue
        for text in [name].compactMap(\.self) + tokens {
            caller.profile.pseudonymizer.pseudonym(of: text).append(to: &record.targets)
        }
        record.recipients = tokens.count
        record.accepted = refusal == nil ? tokens.count : 0
        record.code = refusal?.rawValue
        record.upstreamCode = upstreamCode
        record.traceID = caller.origin.traceID
        return record
    }
}
