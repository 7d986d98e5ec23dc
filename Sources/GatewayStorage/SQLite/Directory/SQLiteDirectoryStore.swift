import GRDB
package import GatewayCore

/// Tenants and what belongs to them, in the gateway's own file.
package struct SQLiteDirectoryStore: DirectoryStore {
    private let database: SQLiteDatabase

    /// A directory in an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
    }

    /// Everything, as one consistent picture: tenants and keys by rising id.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func load() async throws(GatewayError) -> DirectoryContents {
        try await self.database.read { db in
            var contents = DirectoryContents()
            try DirectoryRows.readTenants(db, into: &contents)
            contents.credentials = try DirectoryRows.credentials(db)
            contents.keys = try DirectoryRows.keys(db)
            contents.limits = try DirectoryRows.limits(db)
            return contents
        }
    }

    /// Makes one change in one transaction.
    ///
    /// - Throws: `notFound` where the tenant or key that the change needs is not there, `conflict` where it would
    ///   add a key of a known id, replace another tenant's key or a later version of a credential, `storeUnavailable`.
    package func apply(_ change: DirectoryChange) async throws(GatewayError) {
        try await self.database.write { try DirectoryWriter(db: $0).apply(change) }
        switch change {
        case .deleteTenant, .putCredential:
            // Salts and sealed secrets are meant to be gone.
            await self.database.eraseDeleted()
        case .putTenant, .addKey, .putKey, .rotateKey, .putLimits:
            break
        }
    }

    /// The sealed secrets of the gateway itself; absent ones are stored first, as given.
    ///
    /// - Parameters:
    ///   - candidates: freshly sealed secrets for a first start.
    ///   - end: the end of a row of checkpoints that is still to come, kept with the first secrets of an unused store.
    /// - Returns: what is stored, for every candidate.
    /// - Throws: `storeUnavailable`.
    package func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope] {
        try await self.database.write { db in
            // In a store that has been used, an end that is missing was taken away, and stays missing.
            if try !SQLiteAuditLedgerReader.isInUse(db) { try SQLiteAuditLedgerStore.put(end, db) }
            var stored: [GatewaySecret: Envelope] = [:]
            for (secret, envelope) in candidates {
                try db.execute(
                    sql: """
                        INSERT INTO gateway_secrets (name, wrapped_key, sealed) VALUES (?, ?, ?)
                        ON CONFLICT (name) DO NOTHING
                        """,
                    arguments: [secret.rawValue, envelope.wrappedKey, envelope.sealed]
                )
                let row = try Row.fetchOne(
                    db,
                    sql: "SELECT wrapped_key, sealed FROM gateway_secrets WHERE name = ?",
                    arguments: [secret.rawValue]
                )
                guard let row else { throw DamagedValue(table: "gateway_secrets", column: "name") }
                let reader = RowReader(row, of: "gateway_secrets")
                stored[secret] = try reader.envelope()
            }
            return stored
        }
    }
}
