import GRDB
package import GatewayCore

/// Everything in the gateway's own file that is sealed by the master key.
package struct SQLiteSealedSecrets: GatewaySecretStore {
    private let database: SQLiteDatabase

    /// The sealed secrets of an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
    }

    /// All of them, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func all() async throws(GatewayError) -> [SealedSecret] {
        try await self.database.read { try Self.all($0) }
    }

    static func all(_ db: Database) throws -> [SealedSecret] {
        var secrets: [SealedSecret] = []
        let rows = try Row.fetchCursor(
            db,
            sql: "SELECT name, wrapped_key, sealed FROM gateway_secrets ORDER BY name"
        )
        while let row = try rows.next() {
            let reader = RowReader(row, of: "gateway_secrets")
            let name = try reader.parsed("name") { GatewaySecret(rawValue: $0) }
            secrets.append(SealedSecret(place: .gateway(name), envelope: try reader.envelope()))
        }
        let directory = DirectoryRows(db: db, sealer: nil)
        let salts = try directory.salts()
        return secrets + (try directory.credentials().known.map { SealedSecret($0, salt: salts[$0.tenant.text] ?? []) })
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

    /// Exchanges wrapped keys and records it, all in one transaction: a crash leaves either all of it or nothing.
    ///
    /// A secret that was replaced since it was read is left as it is. The old wrapped keys are overwritten.
    ///
    /// - Parameters:
    ///   - exchanges: what to exchange.
    ///   - masterKey: the key that the new ones are wrapped by.
    ///   - record: makes the record of so many exchanges.
    ///   - sealer: seals the record's chain.
    /// - Returns: how many were exchanged.
    /// - Throws: `conflict` when a process serves the file with another master key, `storeUnavailable`; then nothing
    ///   was changed.
    package func apply(
        _ exchanges: [Rewrapping.Exchange],
        under masterKey: MasterKey,
        record: @escaping @Sendable (_ count: Int) -> AuditRecord,
        sealer: AuditSealer
    ) async throws(GatewayError) -> Int {
        let database = self.database
        let count = try await database.write { db in
            // Asked within the transaction: a process that starts meanwhile waits for its end, and finds what it left.
            try database.requireMasterKey(masterKey.fingerprint)
            var count = 0
            for exchange in exchanges {
                try Self.apply(exchange, db)
                count += db.changesCount
            }
            guard count > 0 else { return 0 }
            let last = try Int.fetchOne(db, sql: "SELECT max(writer) FROM audit_heads") ?? 0
            let episode = AuditEpisode(record(count), writer: last + 1, sealer: sealer)
            _ = try SQLiteAuditStore.append(episode.records, head: episode.head, beyond: .init(), db)
            return count
        }
        await database.eraseDeleted()
        return count
    }

    private static func apply(_ exchange: Rewrapping.Exchange, _ db: Database) throws {
        switch exchange.old.place {
        case .gateway(let secret):
            try db.cachedStatement(sql: "UPDATE gateway_secrets SET wrapped_key = ? WHERE name = ? AND wrapped_key = ?")
                .execute(arguments: [exchange.new.wrappedKey, secret.rawValue, exchange.old.envelope.wrappedKey])
        case .credential(let tenant, let kind, let version):
            try db.cachedStatement(
                sql: """
                    UPDATE credentials SET wrapped_key = ?
                    WHERE tenant = ? AND kind = ? AND version = ? AND wrapped_key = ?
                    """
            )
            .execute(arguments: [
                exchange.new.wrappedKey, tenant.text, kind.rawValue, version, exchange.old.envelope.wrappedKey,
            ])
        }
    }
}
