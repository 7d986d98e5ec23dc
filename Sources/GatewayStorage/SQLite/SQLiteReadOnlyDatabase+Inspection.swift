import GRDB
package import GatewayCore

extension SQLiteReadOnlyDatabase {
    /// How many faults of a damaged file are named.
    private static let maxFaults = 5

    /// Looks at the store as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func inspection() async throws(GatewayError) -> StoreInspection {
        try await self.read { db in
            let isCurrent = try SQLiteMigrations.migrator.hasCompletedMigrations(db)
            let time = try Int64.fetchOne(
                db,
                sql: "SELECT time FROM audit_records ORDER BY writer DESC, sequence DESC LIMIT 1"
            )
            var inspection = StoreInspection(
                schema: try SQLiteMigrations.migrator.appliedIdentifiers(db).max() ?? "none",
                isCurrent: isCurrent,
                newestRecord: time.map(Timestamp.init(microseconds:))
            )
            guard isCurrent else { return inspection }
            inspection.sealed = try SQLiteSealedSecrets.all(db)
            let contents = try DirectoryRows(db: db, sealer: nil).contents()
            let credentials = Dictionary(grouping: contents.credentials, by: \.tenant)
            inspection.tenants = contents.tenants.map {
                StoreInspection.TenantCredentials(tenant: $0, credentials: credentials[$0.id] ?? [])
            }
            return inspection
        }
    }

    /// The rows of the directory that the gateway does not serve, because another one sealed them or nobody did.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func refusedRows(by sealer: RowSealer) async throws(GatewayError) -> [RefusedRow] {
        try await self.read { try DirectoryRows(db: $0, sealer: sealer).contents().refused }
    }

    /// Has SQLite check the file's structure; takes as long as reading it.
    ///
    /// - Returns: what is wrong, at most a few faults; empty for a good file.
    /// - Throws: `storeUnavailable` when it can't even be read.
    package func faults() async throws(GatewayError) -> [String] {
        try await self.read { db in
            try String.fetchAll(db, sql: "PRAGMA quick_check(\(Self.maxFaults))").filter { $0 != "ok" }
        }
    }
}
