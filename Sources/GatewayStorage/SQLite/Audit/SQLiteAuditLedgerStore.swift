import GRDB
package import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What is signed of the audit, in the gateway's own file.
package struct SQLiteAuditLedgerStore: AuditLedgerStore {
    private let database: SQLiteDatabase
    private let reader: SQLiteAuditLedgerReader

    /// A ledger in an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
        self.reader = SQLiteAuditLedgerReader(reading: database.scans)
    }

    /// Checkpoints and cuts, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    package func ledger() async throws(GatewayError) -> AuditLedger {
        try await self.reader.ledger()
    }

    /// The kept checkpoints after one of them, by rising number.
    ///
    /// - Throws: `storeUnavailable`.
    package func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.reader.checkpoints(after: number, limit: limit)
    }

    /// The first place that look-ups don't find as they should.
    ///
    /// - Throws: `storeUnavailable`.
    package func firstMisfiled() async throws(GatewayError) -> AuditPosition? {
        try await self.reader.firstMisfiled()
    }

    /// Whether look-ups find a record, and those around it, as they should.
    ///
    /// - Throws: `storeUnavailable`.
    package func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool {
        try await self.reader.isFiled(place)
    }

    /// Where chains begin whose oldest records were removed, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    package func cuts() async throws(GatewayError) -> [AuditCut] {
        try await self.reader.cuts()
    }

    /// When the records were made, by rising writer and place; no piece covers more than a duration.
    ///
    /// - Throws: `storeUnavailable`.
    package func timeline(maxLength: Duration) async throws(GatewayError) -> [AuditTimePiece] {
        try await AuditTimeline(database: self.database.scans, maxLength: maxLength).pieces()
    }

    /// Adds a checkpoint as the latest, and removes others by it, if any are to be removed, in one transaction.
    ///
    /// - Throws: `storeUnavailable`; then nothing was changed.
    package func append(
        _ checkpoint: SignedCheckpoint,
        thinnedBy content: AuditCheckpoint?,
        end: CheckpointEnd
    ) async throws(GatewayError) {
        try await self.database.write { db in
            try db.cachedStatement(sql: "INSERT INTO audit_checkpoints (number, content, signature) VALUES (?, ?, ?)")
                .execute(arguments: [checkpoint.number, Data(checkpoint.text), Data(checkpoint.signature)])
            try Self.put(end, db)
            guard let content else { return }
            try db.execute(
                sql: "DELETE FROM audit_checkpoints WHERE number < ? OR (number < ? AND number % ? <> 0)",
                arguments: [content.oldest, content.denseFrom, AuditCheckpoint.anchorInterval]
            )
        }
    }

    /// Keeps the word which checkpoint is the latest.
    static func put(_ end: CheckpointEnd, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO gateway_checkpoint_end (id, number, digest, signature) VALUES (1, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET
                    number = excluded.number, digest = excluded.digest, signature = excluded.signature
                """
        )
        .execute(arguments: [end.number, Data(end.digest), Data(end.signature)])
    }

    /// Removes a chain's records up to a cut, and keeps the cut in their stead, in one transaction.
    ///
    /// - Throws: `conflict` when the record of the cut is not there with its hash, `storeUnavailable`; then nothing was
    ///   changed.
    package func remove(upTo cut: AuditCut) async throws(GatewayError) {
        let memory = self.database.auditSpanMemory
        try await self.database.write { db in
            let hash = try Data.fetchOne(
                db,
                sql: "SELECT hash FROM audit_records WHERE writer = ? AND sequence = ?",
                arguments: [cut.writer, cut.sequence]
            )
            guard hash == Data(cut.hash) else {
                throw GatewayError(
                    .conflict,
                    "Place \(cut.sequence) of audit writer \(cut.writer) holds another record"
                )
            }
            try db.execute(
                sql: "DELETE FROM audit_records WHERE writer = ? AND sequence <= ?",
                arguments: [cut.writer, cut.sequence]
            )
            try Self.refile(cut.writer, db)
            memory.forget()
            try db.execute(
                sql: """
                    INSERT INTO audit_cuts (writer, sequence, hash, time, signature) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash,
                        time = excluded.time, signature = excluded.signature
                    """,
                arguments: [cut.writer, cut.sequence, Data(cut.hash), cut.time.microseconds, Data(cut.signature)]
            )
        }
    }

    /// Has look-ups know of a writer's records no more than there are.
    private static func refile(_ writer: Int, _ db: Database) throws {
        let first = try Int.fetchOne(
            db,
            sql: "SELECT min(sequence) FROM audit_records WHERE writer = ?",
            arguments: [writer]
        )
        for table in ["audit_spans", "audit_tenant_spans"] {
            try db.execute(
                sql: "DELETE FROM \(table) WHERE writer = ? AND span < ?",
                arguments: [writer, first.map { AuditSpans.number(of: $0) } ?? Int.max]
            )
        }
        guard let first else { return }
        let span = AuditSpans.number(of: first)
        let range = AuditRange(writer: writer, span: span)
        let arguments: StatementArguments = [
            "writer": writer, "span": span, "first": range.first, "last": range.last,
        ]
        try db.execute(
            sql: """
                UPDATE audit_spans SET (min_time, max_time) = (
                    SELECT min(time), max(time) FROM audit_records
                    WHERE writer = :writer AND sequence BETWEEN :first AND :last
                ) WHERE writer = :writer AND span = :span
                """,
            arguments: arguments
        )
        try db.execute(
            sql: """
                DELETE FROM audit_tenant_spans WHERE writer = :writer AND span = :span AND (tenant, uid) NOT IN (
                    SELECT DISTINCT tenant, \(AuditRowReader.tenantUID) FROM audit_records
                    WHERE writer = :writer AND sequence BETWEEN :first AND :last AND tenant IS NOT NULL
                )
                """,
            arguments: arguments
        )
    }
}
