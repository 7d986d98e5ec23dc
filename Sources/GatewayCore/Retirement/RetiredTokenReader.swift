/// Shows tenants their retired tokens and records that somebody read them.
package struct RetiredTokenReader: Sendable {
    private let retired: RetiredTokens
    private let audit: AuditLog
    private let clock: any WallClock

    /// A reader.
    package init(retired: RetiredTokens, audit: AuditLog, clock: any WallClock) {
        self.retired = retired
        self.audit = audit
        self.clock = clock
    }

    /// A page of the feed.
    ///
    /// - Parameters:
    ///   - principal: who reads.
    ///   - position: where the page before ended; 0 for the beginning.
    ///   - limit: the most tokens of a page.
    ///   - origin: the request behind it.
    /// - Returns: the page.
    /// - Throws: `auditUnavailable`, `storeUnavailable`.
    package func feed(
        to principal: Principal,
        after position: Int,
        limit: Int,
        origin: RequestOrigin
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let now = self.clock.now()
        guard let place = self.audit.reserve() else {
            throw GatewayError(.auditUnavailable, "Reading could not have been recorded")
        }
        var record = AuditRecord(
            time: now,
            tenant: principal.profile.id.text,
            principal: principal.auditName,
            action: AuditAction.retiredTokensList.rawValue,
            outcome: .accepted,
            requestID: origin.requestID
        )
        record.tenantUID = principal.profile.uid
        record.method = origin.method
        record.traceID = origin.traceID
        let result: Result<RetiredTokenFeed, GatewayError>
        do throws(GatewayError) {
            let feed = try await self.retired.feed(of: principal.profile, after: position, limit: limit)
            record.object = "after \(position): \(feed.tokens.count)"
            result = .success(feed)
        } catch {
            record.outcome = .failed
            result = .failure(error)
        }
        place.fill(record)
        if self.audit.isStrict { await self.audit.settle() }
        return try result.get()
    }
}
