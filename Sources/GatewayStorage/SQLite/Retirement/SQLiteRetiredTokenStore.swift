import GRDB
package import GatewayCore

/// The list of retired tokens in the gateway's own file.
package struct SQLiteRetiredTokenStore: RetiredTokenStore {
    private let database: SQLiteDatabase

    /// A list in an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
    }

    /// Everything but the tokens' texts, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func load() async throws(GatewayError) -> RetiredTokenContents {
        try await self.database.read { db in
            RetiredTokenContents(entries: try RetiredTokenRows.entries(db), guards: try RetiredTokenRows.guards(db))
        }
    }

    /// Makes changes in their order, in one transaction; those of a tenant that is gone are left out.
    ///
    /// - Throws: `storeUnavailable`; then nothing was changed.
    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        try await self.database.write { db in
            var writer = RetiredTokenWriter(db: db)
            for change in changes { try writer.apply(change) }
            try writer.finish()
        }
    }

    /// Entries of a tenant's feed after a place, in the order of their places.
    ///
    /// - Throws: `storeUnavailable`.
    package func page(
        of tenant: TenantID,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenPage {
        try await self.database.read { try RetiredTokenRows.page(of: tenant, after: position, limit: limit, $0) }
    }

    /// Drops what was last reported before a moment, and then the oldest of the tenant that has most.
    ///
    /// - Throws: `storeUnavailable`; then nothing was dropped.
    package func trim(
        reportedBefore cutoff: Timestamp,
        keeping maxEntries: Int
    ) async throws(GatewayError) -> [RetiredTokenEntry] {
        try await self.database.write { try RetiredTokenTrim(db: $0).trim(before: cutoff, keeping: maxEntries) }
    }
}
