import FCMModel

extension Administration {
    /// Records the intent, makes the change, refreshes the picture, and records whether the change was made.
    ///
    /// A refusal of the store fails the change, unless `settle` finds that what was wanted is there all the same.
    ///
    /// - Throws: `auditUnavailable` when the intent can't be recorded, and then nothing is done; else what the change or
    ///   the refreshing threw.
    func perform(
        _ change: DirectoryChange,
        action: AuditAction,
        tenant: TenantID,
        object: String,
        origin: RequestOrigin,
        settle: (GatewayError) async throws(GatewayError) -> Void = { refusal throws(GatewayError) in throw refusal }
    ) async throws(GatewayError) {
        var record = AuditRecord(
            time: self.clock.now(),
            tenant: tenant.text,
            principal: "admin",
            action: action.rawValue,
            outcome: .intent,
            requestID: origin.requestID
        )
        record.tenantUID = self.uid(of: tenant, changedBy: change)
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
            do throws(GatewayError) {
                try await self.store.apply(change)
            } catch {
                try await settle(error)
            }
            record.outcome = .done
        } catch {
            failure = error
            record.outcome = .failed
            record.code = error.code.rawValue
        }
        if failure == nil {
            // A change that was made is recorded as made, even where the picture can't be refreshed.
            do {
                try await self.directory.reload()
            } catch {
                failure = error
                self.directory.reloadEventually()
            }
        }
        record.time = self.clock.now()
        place.fill(record)
        // What is done can't be taken back, so its caller is told of it also when the record has yet to follow.
        await self.audit.settle()
        if let failure { throw failure }
    }

    /// The uid of a tenant that is there, or of the one that a change is to make.
    private func uid(of tenant: TenantID, changedBy change: DirectoryChange) -> UInt64 {
        if let profile = self.directory.snapshot.tenants[tenant] { return profile.uid }
        guard case .putTenant(_, let salt) = change else { return 0 }
        return TenantProfile.uid(of: tenant, self.directory.pseudonymizer(tenantSalt: salt))
    }
}
