import FCMModel

/// Shows tenants their retired tokens, takes some off the list, and records who did.
package struct RetiredTokenAccess: Sendable {
    private let retired: RetiredTokens
    private let audit: AuditLog
    private let clock: any WallClock

    package init(retired: RetiredTokens, audit: AuditLog, clock: any WallClock) {
        (self.retired, self.audit, self.clock) = (retired, audit, clock)
    }

    /// A page of the feed, after the cursor of the page before, or from the beginning. Throws `invalid` for a cursor
    /// from before the store was restored or copied.
    package func feed(
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int,
        by caller: Caller
    ) async throws(GatewayError) -> RetiredTokenFeed {
        try await self.audit.recording(
            AuditRecord(.retiredTokensList, by: caller.principal, caller.origin, at: self.clock.now()),
            orThrow: GatewayError.unrecordedReading
        ) { record throws(GatewayError) in
            do throws(GatewayError) {
                let feed = try await self.retired.feed(of: caller.profile, after: cursor, limit: limit)
                record.object = "\(feed.tokens.count) tokens"
                return feed
            } catch {
                if error.code == .invalid { record.reject(.invalidField) } else { record.outcome = .failed }
                throw error
            }
        }
    }

    /// Takes a token off the list, so that the next send to it asks FCM. Returns false if it was not on it. Throws
    /// `auditUnavailable` if nothing was changed, and what the store throws.
    package func delete(
        _ text: String,
        _ kind: RetiredToken.Kind,
        by caller: Caller
    ) async throws(GatewayError) -> Bool {
        var draft = AuditRecord(.retiredTokensDelete, by: caller.principal, caller.origin, at: self.clock.now())
        draft.targetKind = kind.rawValue
        draft.append([text], of: caller.profile)
        (draft.recipients, draft.accepted) = (1, 1)
        return try await self.audit.recording(
            draft,
            orThrow: GatewayError(.auditUnavailable, "The change could not have been recorded")
        ) { record throws(GatewayError) -> Bool in
            let pseudonym = caller.profile.pseudonymizer.pseudonym(of: text)
            do throws(GatewayError) {
                let wasListed = try await self.retired.delete(pseudonym, of: caller.profile)
                if !wasListed { record.reject(.notFound) }
                return wasListed
            } catch {
                record.outcome = .failed
                throw error
            }
        }
    }
}
