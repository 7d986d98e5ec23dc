/// Keeps the tokens that FCM reported dead or replaced, and what each tenant's purge guard has learnt.
package protocol RetiredTokenStore: Sendable {
    /// Everything but the tokens' texts, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    func load() async throws(GatewayError) -> RetiredTokenContents

    /// Makes changes in their order, in one transaction; those of a tenant that is gone are left out.
    ///
    /// A token that is put in a state that is fed, or moved to one, takes the place after all others in its tenant's feed.
    ///
    /// - Throws: `storeUnavailable`; then nothing was changed.
    func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError)

    /// Entries of a tenant's feed after a place, in the order of their places.
    ///
    /// - Throws: `storeUnavailable`.
    func page(of tenant: TenantID, after position: Int, limit: Int) async throws(GatewayError) -> RetiredTokenPage

    /// Drops entries that were last reported before a moment, and then the oldest of the tenant that has most, until no
    /// more than so many are left.
    ///
    /// - Returns: what was dropped.
    /// - Throws: `storeUnavailable`; then nothing was dropped.
    func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError)
        -> [RetiredTokenEntry]
}

/// A tenant in one of its lives: one that is made anew under an old name has nothing of the old one.
package struct RetiredTokenOwner: Sendable, Hashable {
    /// The tenant's name.
    package var tenant: TenantID
    /// When it was made.
    package var createdAt: Timestamp

    /// An owner.
    package init(tenant: TenantID, createdAt: Timestamp) {
        self.tenant = tenant
        self.createdAt = createdAt
    }

    /// The owner behind a profile.
    package init(_ profile: TenantProfile) {
        self.init(tenant: profile.id, createdAt: profile.tenant.createdAt)
    }
}

/// A retired token as it is stored.
package struct RetiredTokenRow: Sendable, Hashable {
    /// The first 64 bits of its pseudonym.
    package var key: UInt64
    /// What it is.
    package var kind: RetiredTokenKind
    /// How it stands.
    package var state: RetiredTokenState
    /// When FCM first reported it.
    package var since: Timestamp
    /// When FCM last reported it.
    package var reportedAt: Timestamp
    /// Some bits of the replacement's pseudonym; 0 without one.
    package var replacement: UInt16
    /// The token and its replacement, sealed.
    package var sealed: [UInt8]

    /// A row.
    package init(
        key: UInt64,
        kind: RetiredTokenKind,
        state: RetiredTokenState,
        since: Timestamp,
        reportedAt: Timestamp,
        replacement: UInt16,
        sealed: [UInt8]
    ) {
        self.key = key
        self.kind = kind
        self.state = state
        self.since = since
        self.reportedAt = reportedAt
        self.replacement = replacement
        self.sealed = sealed
    }
}

/// One change of the list of retired tokens.
package enum RetiredTokenChange: Sendable, Hashable {
    /// Adds an entry or replaces it; where told to, a replaced one keeps the time of its first report.
    case put(RetiredTokenOwner, RetiredTokenRow, keepsSince: Bool)
    /// Changes the state of entries that are there.
    case move(RetiredTokenOwner, [UInt64], to: RetiredTokenState)
    /// Notes a further report of an entry that is there.
    case touch(RetiredTokenOwner, UInt64, at: Timestamp)
    /// Removes an entry.
    case remove(RetiredTokenOwner, UInt64)
    /// Keeps what the tenant's purge guard has learnt.
    case keepGuard(RetiredTokenOwner, PurgeGuard)
}

/// A retired token without its text.
package struct RetiredTokenEntry: Sendable, Hashable {
    /// The tenant.
    package var tenant: TenantID
    /// The first 64 bits of its pseudonym.
    package var key: UInt64
    /// How it stands.
    package var state: RetiredTokenState
    /// When FCM last reported it.
    package var reportedAt: Timestamp
    /// Some bits of the replacement's pseudonym; 0 without one.
    package var replacement: UInt16

    /// An entry.
    package init(
        tenant: TenantID,
        key: UInt64,
        state: RetiredTokenState,
        reportedAt: Timestamp,
        replacement: UInt16
    ) {
        self.tenant = tenant
        self.key = key
        self.state = state
        self.reportedAt = reportedAt
        self.replacement = replacement
    }
}

/// What a store of retired tokens holds.
package struct RetiredTokenContents: Sendable {
    /// The entries, in the order of their last reports.
    package var entries: [RetiredTokenEntry]
    /// The tenants' purge guards.
    package var guards: [TenantID: PurgeGuard]

    /// The contents.
    package init(entries: [RetiredTokenEntry] = [], guards: [TenantID: PurgeGuard] = [:]) {
        self.entries = entries
        self.guards = guards
    }
}

/// Some entries of a tenant's feed, as stored.
package struct RetiredTokenPage: Sendable, Hashable {
    /// The entries, in the order of their places.
    package var rows: [RetiredTokenRow]
    /// The last one's place; the place that was asked for where there is none.
    package var position: Int
    /// Whether more follow.
    package var hasMore: Bool

    /// A page.
    package init(rows: [RetiredTokenRow], position: Int, hasMore: Bool) {
        self.rows = rows
        self.position = position
        self.hasMore = hasMore
    }
}
