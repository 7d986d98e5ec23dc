package import GatewayCore

/// Copies a store of SQLite into an empty PostgreSQL: all of it, with its audit verified there, or nothing.
///
/// The copy locks the source and the target's tables, so that no gateway serves either. It writes rows unchanged, in
/// one transaction. Seals and signatures stay valid, with the same keys.
package struct StoreCopy: Sendable {
    /// The current step, for progress reports.
    package enum Work: String, Sendable, CaseIterable {
        case rows
        case verification = "audit records"
    }

    /// The size of the copy.
    package struct Outcome: Sendable, Hashable {
        package var rows: Int
        package var tenants: Int
        package var auditRecords: Int
    }

    private let source: SQLiteDatabase
    private let target: PostgreSQLSettings
    private let masterKey: MasterKey
    private let isDryRun: Bool

    /// A dry run does everything but the COMMIT. It also accepts a backup, whose audit chain is open.
    package init(
        from source: SQLiteDatabase,
        to target: PostgreSQLSettings,
        masterKey: MasterKey,
        isDryRun: Bool = false
    ) {
        (self.source, self.target, self.masterKey) = (source, target, masterKey)
        self.isDryRun = isDryRun
    }

    /// Copies the store and reports progress.
    ///
    /// Throws `conflict` if the source is served or the target has rows. Throws `invalid` if the source was not stopped
    /// cleanly, the master key is not its own, or the schemas differ. Throws an ``AuditVerifier/Verdict`` if the audit
    /// is not whole, and `storeUnavailable` otherwise. Then nothing was written, unless the cause is a
    /// ``CommitOutcomeUnknown``.
    package func run(progress: @escaping @Sendable (Work, _ done: Int, _ total: Int) -> Void) async throws -> Outcome {
        try await self.requireStopped()
        let target = PostgreSQLTransactionDatabase(self.target)
        do {
            try await target.begin()
            let rows = try await self.copyRows(into: target) { progress(.rows, $0, $1) }
            let records = try await self.verify(target) { progress(.verification, $0, $1) }
            let tenants = try await SQLSecretStore(database: target).inspection().tenants.count
            if self.isDryRun { await target.close() } else { try await target.commit() }
            return Outcome(rows: rows, tenants: tenants, auditRecords: records)
        } catch {
            await target.close()
            throw error
        }
    }

    // MARK: The source

    /// An open chain belongs to a process that ended uncleanly. No process would close it in the copy.
    private func requireStopped() async throws(GatewayError) {
        try self.source.requireLock()
        let secrets = try await self.secrets(of: self.source)
        if self.isDryRun { return }
        let restart = "start the gateway once and stop it cleanly, then copy"
        if try await SQLAuditStore(database: self.source).heads().contains(where: { $0.state == .open }) {
            throw GatewayError(.invalid, "The gateway that served this store ended uncleanly; \(restart)")
        }
        guard let file = try SpoolFile(reading: self.source.directory) else { return }
        let spool = try await AuditSpool(file: file, auditKey: secrets.auditKey, maxBytes: 0).inspect()
        guard spool.records == 0, !spool.isDamaged else {
            throw GatewayError(.invalid, "The audit's spool holds records that the store lacks; \(restart)")
        }
    }

    private func secrets(of database: any SQLDatabase) async throws(GatewayError) -> GatewaySecrets {
        let stored = try await SQLSecretStore(database: database).gatewaySecrets()
        return try GatewaySecrets(stored: stored, masterKey: self.masterKey)
    }

    // MARK: Rows

    private func copyRows(
        into target: PostgreSQLTransactionDatabase,
        progress: @escaping @Sendable (_ done: Int, _ total: Int) -> Void
    ) async throws(GatewayError) -> Int {
        let source = self.source
        return try await target.write(scope: .gateway, isolation: .readCommitted) { target in
            try Self.requireEmpty(target)
            return try source.readBlocking { source in
                let rows = try Self.copyTables(source, target, progress)
                try Self.copyCounters(source, target)
                try StoreEpoch.renew(target)
                return rows
            }
        }
    }

    /// The tables to copy. The target has its own epoch, so that no reader continues in one store at its position in
    /// the other.
    private static let tables = SQLSchema.tables.filter { $0 != "store_epoch" }

    /// Locks all tables. A gateway that starts meanwhile waits, and fails.
    private static func requireEmpty(_ target: any SQLConnection) throws {
        let isForeign = try target.exists(
            "SELECT 1 FROM pg_class WHERE oid = to_regclass('tenants') AND NOT pg_has_role(relowner, 'USAGE')"
        )
        guard !isForeign else {
            throw GatewayError(.invalid, "The target's user does not own its tables; connect as store migrate does")
        }
        try target.execute("SET LOCAL lock_timeout = '5s'")
        do {
            let tables = Self.tables.joined(separator: ", ")
            try target.execute("LOCK TABLE \(tables) IN SHARE ROW EXCLUSIVE MODE")
        } catch let error as PostgreSQLError where error.isLocked {
            throw GatewayError(.conflict, "Another process writes to the target; stop it first", cause: error)
        }
        for table in Self.tables {
            guard try !target.exists("SELECT 1 FROM \(table) LIMIT 1") else {
                throw GatewayError(
                    .conflict,
                    "The target is not empty: \(table) has rows. Copy into a new database, after store migrate"
                )
            }
        }
    }

    private static func copyTables(
        _ source: any SQLConnection,
        _ target: any SQLConnection,
        _ progress: (_ done: Int, _ total: Int) -> Void
    ) throws -> Int {
        let counts = try Self.tables.map { try Self.count($0, source) }
        let total = counts.reduce(0, +)
        var done = 0
        progress(done, total)
        for (table, count) in zip(Self.tables, counts) {
            var batch = RowBatch(of: table)
            func flush() throws {
                done += batch.rows.count
                try batch.write(to: target)
                progress(done, total)
            }
            try source.query("SELECT * FROM \(table)", []) { row in
                batch.append(row)
                if batch.isFull { try flush() }
                return true
            }
            try flush()
            let copied = try Self.count(table, target)
            guard copied == count else {
                throw GatewayError(.storeUnavailable, "The target has \(copied) of \(count) rows of \(table)")
            }
        }
        return total
    }

    private static func count(_ table: String, _ db: any SQLConnection) throws -> Int {
        try db.first("SELECT count(*) FROM \(table)") { try $0.int(0) } ?? 0
    }

    /// Autoincremented keys continue after the source's last one, so that no number is used again.
    private static func copyCounters(_ source: any SQLConnection, _ target: any SQLConnection) throws {
        let counters = try source.rows("SELECT name, seq FROM sqlite_sequence WHERE seq > 0") { row in
            (table: try row.text(0), last: try row.int64(1))
        }
        for (table, last) in counters {
            _ = try target.exists(
                """
                SELECT setval(pg_get_serial_sequence($1, CAST(attname AS TEXT)), CAST($2 AS BIGINT)) FROM pg_attribute
                WHERE attrelid = to_regclass($1) AND attidentity <> ''
                """,
                [.string(table), .integer(last)]
            )
        }
    }

    // MARK: Proof

    /// Verifies the transaction's data as `audit verify` does. Returns the number of records.
    private func verify(
        _ target: PostgreSQLTransactionDatabase,
        progress: @escaping @Sendable (_ done: Int, _ total: Int) -> Void
    ) async throws -> Int {
        let secrets = try await self.secrets(of: target)
        let sealer = RowSealer(keyPepper: secrets.keyPepper)
        let refused = try await SQLSecretStore(database: target).refusedRows(by: sealer)
        let refusedBefore = try await SQLSecretStore(database: self.source).refusedRows(by: sealer)
        guard Set(refused) == Set(refusedBefore) else {
            throw GatewayError(.storeUnavailable, "The target's rows differ from the source's: their seals don't match")
        }
        let verifier = AuditVerifier(
            store: SQLAuditStore(database: target),
            sealer: AuditSealer(auditKey: secrets.auditKey),
            publicKey: try secrets.auditPublicKey()
        )
        let verdict = try await verifier.verify(isLive: false, progress: progress)
        switch verdict {
        case .intact(let records): return records
        case .unclean(_, let records) where self.isDryRun: return records
        case .unclean, .tampered, .checkpointTampered: throw verdict
        }
    }
}

extension StoreCopy {
    /// A bounded batch of rows for one table.
    private struct RowBatch {
        private static let maxRows = 1_000
        private static let maxBytes = 4 << 20

        let table: String
        private(set) var rows: [SQLRow] = []
        private var bytes = 0

        init(of table: String) {
            self.table = table
        }

        var isFull: Bool { self.rows.count >= Self.maxRows || self.bytes >= Self.maxBytes }

        mutating func append(_ row: SQLRow) {
            self.rows.append(row)
            for value in row.values {
                switch value {
                case .null, .integer, .double: self.bytes += 8
                case .string(let text): self.bytes += text.utf8.count
                case .blob(let bytes): self.bytes += bytes.count
                }
            }
        }

        /// Inserts the rows and empties the batch.
        mutating func write(to target: any SQLConnection) throws {
            guard let names = self.rows.first?.names else { return }
            do {
                try target.insert(self.rows.map(\.values), by: SQLInsertion(into: self.table, names))
            } catch let error as PostgreSQLError where error.isAboutData {
                throw GatewayError(.invalid, "A value in \(self.table) can't be stored in PostgreSQL", cause: error)
            }
            (self.rows, self.bytes) = ([], 0)
        }
    }
}
