import GRDB
package import GatewayCore

/// Reads what is signed of the audit from the gateway's own file.
package struct SQLiteAuditLedgerReader: AuditLedgerReader {
    private let database: any SQLiteReading

    init(reading database: any SQLiteReading) {
        self.database = database
    }

    /// A reader of a store that is open for looking only.
    package init(database: SQLiteReadOnlyDatabase) {
        self.init(reading: database)
    }

    /// Checkpoints and cuts, as one consistent picture; nothing where the file is from before there were any.
    ///
    /// - Throws: `storeUnavailable`, also for stored values of the wrong kind.
    package func ledger() async throws(GatewayError) -> AuditLedger {
        try await self.database.read { db in
            guard try db.tableExists("audit_checkpoints") else { return AuditLedger() }
            return AuditLedger(
                checkpoints: try Self.checkpoints(db, after: Int.min, limit: Int.max),
                end: try Self.end(db),
                cuts: try Self.cuts(db),
                isInUse: try Self.isInUse(db),
                unrecordedTenant: try Self.unrecordedTenant(db)
            )
        }
    }

    /// The kept checkpoints after one of them, by rising number.
    ///
    /// - Throws: `storeUnavailable`.
    package func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.database.read { try Self.checkpoints($0, after: number, limit: limit) }
    }

    /// Where chains begin whose oldest records were removed, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    package func cuts() async throws(GatewayError) -> [AuditCut] {
        try await self.database.read { try Self.cuts($0) }
    }

    /// The first place that look-ups don't find as they should.
    ///
    /// - Throws: `storeUnavailable`.
    package func firstMisfiled() async throws(GatewayError) -> AuditPosition? {
        try await AuditFilingCheck(database: self.database).firstMisfiled()
    }

    /// Whether look-ups find a record, and those around it, as they should.
    ///
    /// - Throws: `storeUnavailable`.
    package func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool {
        try await AuditFilingCheck(database: self.database).isFiled(place)
    }

    /// Whether the store has secrets of the gateway or tenants.
    static func isInUse(_ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: "SELECT EXISTS (SELECT 1 FROM gateway_secrets) OR EXISTS (SELECT 1 FROM tenants)"
        ) ?? false
    }

    /// A tenant of whom look-ups find no record, where no records were removed by age.
    private static func unrecordedTenant(_ db: Database) throws -> String? {
        try String.fetchOne(
            db,
            sql: """
                SELECT id FROM tenants WHERE NOT EXISTS (SELECT 1 FROM audit_cuts)
                    AND NOT EXISTS (SELECT 1 FROM audit_tenant_spans WHERE tenant = tenants.id)
                ORDER BY id LIMIT 1
                """
        )
    }

    private static func cuts(_ db: Database) throws -> [AuditCut] {
        let rows = try Row.fetchCursor(
            db,
            sql: "SELECT writer, sequence, hash, time, signature FROM audit_cuts ORDER BY writer"
        )
        var cuts: [AuditCut] = []
        while let row = try rows.next() {
            cuts.append(try Self.cut(RowReader(row, of: "audit_cuts")))
        }
        return cuts
    }

    /// Where one chain begins, if its oldest records were removed.
    static func cut(of writer: Int, _ db: Database) throws -> AuditCut? {
        guard try db.tableExists("audit_cuts") else { return nil }
        let statement = try db.cachedStatement(
            sql: "SELECT writer, sequence, hash, time, signature FROM audit_cuts WHERE writer = ?"
        )
        return try Row.fetchOne(statement, arguments: [writer]).map { try self.cut(RowReader($0, of: "audit_cuts")) }
    }

    private static func cut(_ reader: RowReader) throws -> AuditCut {
        AuditCut(
            writer: try reader.value("writer"),
            sequence: try reader.value("sequence"),
            hash: try reader.bytes("hash"),
            time: try reader.time("time"),
            signature: try reader.bytes("signature")
        )
    }

    private static func checkpoints(_ db: Database, after number: Int, limit: Int) throws -> [SignedCheckpoint] {
        let rows = try Row.fetchCursor(
            db,
            sql: "SELECT number, content, signature FROM audit_checkpoints WHERE number > ? ORDER BY number LIMIT ?",
            arguments: [number, limit]
        )
        var checkpoints: [SignedCheckpoint] = []
        while let row = try rows.next() {
            let reader = RowReader(row, of: "audit_checkpoints")
            checkpoints.append(
                SignedCheckpoint(
                    number: try reader.value("number"),
                    text: try reader.bytes("content"),
                    signature: try reader.bytes("signature")
                )
            )
        }
        return checkpoints
    }

    private static func end(_ db: Database) throws -> CheckpointEnd? {
        guard let row = try Row.fetchOne(db, sql: "SELECT number, digest, signature FROM gateway_checkpoint_end") else {
            return nil
        }
        let reader = RowReader(row, of: "gateway_checkpoint_end")
        return CheckpointEnd(
            number: try reader.value("number"),
            digest: try reader.bytes("digest"),
            signature: try reader.bytes("signature")
        )
    }
}
