import Logging

extension RetiredTokens {
    /// A tenant's feed after a place: 0 for all of it.
    ///
    /// - Throws: `storeUnavailable`.
    package func feed(
        of profile: TenantProfile,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let page = try await self.store.page(of: profile.id, after: position, limit: limit)
        let sealer = RetiredTokenSealer(of: profile)
        var tokens: [RetiredToken] = []
        tokens.reserveCapacity(page.rows.count)
        for row in page.rows {
            guard let opened = sealer.open(row.sealed, at: row.key) else {
                self.logger.error(
                    "A stored retired token does not open and is left out of the feed",
                    metadata: ["tenant": "\(profile.id.text)"]
                )
                continue
            }
            tokens.append(
                RetiredToken(
                    kind: row.kind,
                    text: opened.token,
                    reason: row.state == .replaced ? .replaced : .unregistered,
                    since: row.since,
                    replacement: opened.replacement
                )
            )
        }
        return RetiredTokenFeed(tokens: tokens, position: page.position, hasMore: page.hasMore)
    }
}
