import FCMModel

/// Shows the audit to tenants and operators, and records who looked.
package struct AuditAccess: Sendable {
    private let store: any AuditPageReader
    private let log: AuditLog
    private let limiter: any RateLimiter
    private let clock: any WallClock

    package init(store: any AuditPageReader, log: AuditLog, limiter: any RateLimiter, clock: any WallClock) {
        (self.store, self.log, self.limiter, self.clock) = (store, log, limiter, clock)
    }

    /// A page for a tenant, of whose quota it costs one message, and what is left of the quota; throws
    /// `auditUnavailable` where nothing was read, `storeUnavailable`, `overloaded`.
    package func page(
        _ query: AuditQuery,
        for caller: Caller
    ) async throws(GatewayError) -> ChargedAnswer<AuditQuery.Page> {
        let now = self.clock.now()
        return try await self.log.recording(
            AuditRecord(.auditList, by: caller.principal, caller.origin, at: now),
            orThrow: GatewayError.unrecordedReading
        ) { record throws(GatewayError) in
            let decision = await self.limiter.admit(LimitRequest(calls: 1, of: caller.profile), now: now)
            if case .none(let denial) = decision.admission {
                var refusal = Refusal(denial)
                refusal.detail = "The tenant's quota is used up; a page of the audit costs as much as a message"
                record.reject(refusal.code)
                return ChargedAnswer(.failure(refusal), quotas: decision.tenantQuotas)
            }
            return ChargedAnswer(.success(try await self.page(query, &record)), quotas: decision.tenantQuotas)
        }
    }

    /// A page for an operator, who looks at the records of a tenant, or at everybody's.
    package func page(
        _ query: AuditQuery,
        of tenant: TenantProfile?,
        origin: RequestOrigin
    ) async throws(GatewayError) -> AuditQuery.Page {
        let draft = AuditRecord(.auditList, of: tenant?.id, uid: tenant?.uid ?? 0, origin, at: self.clock.now())
        return try await self.log.recording(read: draft) { record throws(GatewayError) in
            let page = try await self.page(query, &record)
            // A removed tenant has records and no profile.
            if tenant == nil, !page.records.isEmpty { record.tenant = query.tenant }
            return page
        }
    }

    /// Reads a page, and notes in the record of the reading what came of it.
    private func page(_ query: AuditQuery, _ record: inout AuditRecord) async throws(GatewayError) -> AuditQuery.Page {
        do throws(GatewayError) {
            let page = try await self.store.page(query)
            record.object = "\(page.records.count) records"
            return page
        } catch {
            record.outcome = .failed
            record.code = error.code.rawValue
            throw error
        }
    }
}

extension GatewayError {
    static let unrecordedReading = GatewayError(.auditUnavailable, "Reading could not have been recorded")
}
