import FCMModel

extension DeviceGroups {
    /// Commits that something is about to be done to a group.
    ///
    /// - Throws: `auditUnavailable`; then it must not be done.
    func announce(
        _ action: GroupAction,
        _ name: String?,
        _ tokens: [String],
        by caller: GroupCaller,
        at time: Timestamp
    ) async throws(Refusal) {
        let refused = AuditRecord.group(
            action,
            name,
            tokens: tokens,
            by: caller,
            refusal: .auditUnavailable,
            upstreamCode: nil,
            at: time
        )
        do throws(GatewayError) {
            try await self.audit.announce(refused: refused)
        } catch {
            self.metrics.count(action, of: caller.profile.id, outcome: OutcomeCode.auditUnavailable.rawValue)
            throw Refusal(.auditUnavailable)
        }
    }
}
