import FCMModel

/// What an operator wants done, worked out from the directory as it is.
struct PlannedChange<Answer: Sendable> {
    /// The change; `nil` where there is nothing to do, and then nothing is recorded.
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

    /// Plans a change when the tenant's turn has come, records the intent, makes the change, which is in force then, and
    /// records whether it was made.
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
        let planned: PlannedChange<Answer>
        let failure: GatewayError?
        do {
            defer { self.turns.leave(tenant) }
            planned = try plan()
            guard let change = planned.change else { return planned.answer }
            failure = try await self.make(change, action, planned.object, origin)
        }
        // What is done can't be taken back, so its caller is told of it also when the record has yet to follow.
        await self.audit.settle()
        if let failure { throw failure }
        return planned.answer
    }

    /// - Returns: why the change was not made; it is recorded either way.
    /// - Throws: `auditUnavailable`, and then nothing was done.
    private func make(
        _ change: DirectoryChange,
        _ action: AuditAction,
        _ object: String,
        _ origin: RequestOrigin
    ) async throws(GatewayError) -> GatewayError? {
        var record = AuditRecord(
            time: self.clock.now(),
            tenant: change.tenant.text,
            principal: "admin",
            action: action.rawValue,
            outcome: .intent,
            requestID: origin.requestID
        )
        record.tenantUID = self.uid(changedBy: change)
        record.method = origin.method
        record.object = object
        record.traceID = origin.traceID
        var refused = record
        (refused.outcome, refused.code) = (.failed, OutcomeCode.auditUnavailable.rawValue)
        // Taken before anything is done, so that there is room for the outcome whatever becomes of the store meanwhile.
        guard let place = self.audit.reserveForChange() else { throw AuditLog.unavailable }
        try await self.audit.announce(refused: refused)

        var failure: GatewayError?
        do throws(GatewayError) {
            try await self.directory.apply(change)
            record.outcome = .done
        } catch {
            failure = error
            record.outcome = .failed
            record.code = error.code.rawValue
        }
        record.time = self.clock.now()
        place.fill(record)
        return failure
    }

    /// The uid of a tenant that is there, or of the one that a change is to make.
    private func uid(changedBy change: DirectoryChange) -> UInt64 {
        if let profile = self.directory.snapshot.tenants[change.tenant] { return profile.uid }
        guard case .putTenant(let tenant, let salt) = change else { return 0 }
        return TenantProfile.uid(of: tenant.id, self.directory.pseudonymizer(tenantSalt: salt))
    }
}
