import FCMModel

extension AuditLog {
    /// Refuses a request whose key lacks the scope for it, and records that.
    ///
    /// It comes before the request's body is read: a key that may not do something has no say in how much work its
    /// requests make. The record therefore names no target. Nothing is done for such a request, so that it is refused in
    /// the same way when it can't be recorded.
    ///
    /// - Parameters:
    ///   - principal: whose key it is.
    ///   - scope: what the key lacks.
    ///   - action: what was asked for.
    ///   - origin: the request.
    ///   - time: when it came.
    /// - Returns: the refusal.
    func refuse(
        _ principal: Principal,
        lacking scope: Scope,
        action: AuditAction,
        origin: RequestOrigin,
        at time: Timestamp
    ) async -> Refusal {
        let refusal = Refusal(.forbidden, "The key lacks the scope \(scope.rawValue)")
        guard let place = self.reserve() else { return refusal }
        var record = AuditRecord(
            time: time,
            tenant: principal.profile.id.text,
            principal: principal.auditName,
            action: action.rawValue,
            outcome: .rejected,
            requestID: origin.requestID
        )
        record.tenantUID = principal.profile.uid
        record.method = origin.method
        record.code = refusal.code.rawValue
        record.traceID = origin.traceID
        place.fill(record)
        if self.isStrict { await self.settle() }
        return refusal
    }
}
