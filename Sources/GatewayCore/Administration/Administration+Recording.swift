import FCMModel

/// What an operator wants done, worked out from the directory as it is.
struct PlannedChange<Answer: Sendable> {
    /// `nil` where there is nothing to do, and then nothing is recorded.
    let change: DirectoryChange?
    /// What the audit names as changed.
    let object: String
    /// What the operator is told once it is done.
    let answer: Answer

    init(_ change: DirectoryChange?, _ object: String, answer: Answer) {
        (self.change, self.object, self.answer) = (change, object, answer)
    }
}

extension Administration {
    /// How long a change waits for others of its tenant.
    private static let turnTimeout = Duration.seconds(30)

    /// Plans a change when the tenant's turn has come, and makes it; it is in force then, and recorded.
    ///
    /// - Throws: what the plan throws, and then nothing is recorded; `auditUnavailable` when the intent can't be recorded,
    ///   and then nothing is done; else what the change threw.
    func perform<Answer: Sendable>(
        _ action: AuditAction,
        tenant: TenantID,
        origin: RequestOrigin,
        _ plan: () throws(GatewayError) -> PlannedChange<Answer>
    ) async throws(GatewayError) -> Answer {
        guard await self.turns.enter(tenant, until: .now + Self.turnTimeout) else {
            throw GatewayError(.conflict, "Other changes of this tenant are still under way; try again")
        }
        defer { self.turns.leave(tenant) }
        let planned = try plan()
        guard let change = planned.change else { return planned.answer }
        var draft = AuditRecord(
            action,
            of: change.tenant,
            uid: self.uid(changedBy: change),
            origin,
            at: self.clock.now()
        )
        draft.object = planned.object
        try await self.audit.recording(draft, by: .admin, orThrow: AuditLog.unavailable) {
            record throws(GatewayError) in
            do throws(GatewayError) {
                try await self.directory.apply(change)
            } catch {
                record.outcome = .failed
                record.code = error.code.rawValue
                throw error
            }
        }
        return planned.answer
    }

    /// The uid of a tenant that is there, or of the one that a change is to make.
    private func uid(changedBy change: DirectoryChange) -> UInt64 {
        if let profile = self.directory.snapshot.tenants[change.tenant] { return profile.uid }
        guard case .putTenant(let tenant, let salt) = change else { return 0 }
        return TenantProfile.uid(of: tenant.id, self.directory.pseudonymizer(tenantSalt: salt))
    }
}
