import FCMModel

/// Shows tenants their retired tokens, takes some off the list, and records who did.
package struct RetiredTokenAccess: Sendable {
    private let retired: RetiredTokens
    private let audit: AuditLog
    private let clock: any WallClock

    /// Access to a list.
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
        guard let place = self.audit.reserve() else {
            throw GatewayError(.auditUnavailable, "Reading could not have been recorded")
        }
        var record = self.record(.retiredTokensList, .accepted, by: principal, origin)
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

    /// Takes a token off the list, so that the next send to it asks FCM.
    ///
    /// - Parameters:
    ///   - text: the token.
    ///   - kind: what it is.
    ///   - principal: whose list, and who asks.
    ///   - origin: the request behind it.
    /// - Returns: whether it was on the list.
    /// - Throws: `auditUnavailable`; then nothing was changed.
    package func delete(
        _ text: String,
        _ kind: RetiredToken.Kind,
        by principal: Principal,
        origin: RequestOrigin
    ) async throws(GatewayError) -> Bool {
        let unrecordable = GatewayError(.auditUnavailable, "The change could not have been recorded")
        guard let place = self.audit.reserve() else { throw unrecordable }
        let pseudonym = principal.profile.pseudonymizer.pseudonym(of: text)
        var record = self.record(.retiredTokensDelete, .rejected, by: principal, origin)
        record.targetKind = kind.rawValue
        pseudonym.append(to: &record.targets)
        record.recipients = 1
        if self.audit.isStrict {
            var intent = record
            intent.code = OutcomeCode.auditUnavailable.rawValue
            guard (try? await self.audit.announce(refused: intent)) != nil else { throw unrecordable }
        }
        let wasListed = self.retired.delete(pseudonym, of: principal.profile)
        record.outcome = wasListed ? .accepted : .rejected
        record.accepted = wasListed ? 1 : 0
        record.code = wasListed ? nil : OutcomeCode.notFound.rawValue
        place.fill(record)
        if self.audit.isStrict { await self.audit.settle() }
        return wasListed
    }

    private func record(
        _ action: AuditAction,
        _ outcome: AuditRecord.Outcome,
        by principal: Principal,
        _ origin: RequestOrigin
    ) -> AuditRecord {
        var record = AuditRecord(
            time: self.clock.now(),
            tenant: principal.profile.id.text,
            principal: principal.auditName,
            action: action.rawValue,
            outcome: outcome,
            requestID: origin.requestID
        )
        record.tenantUID = principal.profile.uid
        record.method = origin.method
        record.traceID = origin.traceID
        return record
    }
}
