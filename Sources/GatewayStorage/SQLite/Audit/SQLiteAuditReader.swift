import GRDB
package import GatewayCore

/// Reads the audit's chains back from the gateway's own file.
package struct SQLiteAuditReader: AuditReader {
    let database: any SQLiteReading

    init(reading database: any SQLiteReading) {
        self.database = database
    }

    /// A reader of a store that is open for looking only.
    package init(database: SQLiteReadOnlyDatabase) {
        self.init(reading: database)
    }

    /// The end of every writer's chain, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    package func heads() async throws(GatewayError) -> [AuditHead] {
        try await self.database.read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: "SELECT writer, sequence, hash, state, seal FROM audit_heads ORDER BY writer"
            )
            var heads: [AuditHead] = []
            while let row = try rows.next() {
                heads.append(try Self.head(RowReader(row, of: "audit_heads")))
            }
            return heads
        }
    }

    /// Records of one writer, by rising sequence, after one of them.
    ///
    /// - Throws: `storeUnavailable`.
    package func records(
        of writer: Int,
        after sequence: Int,
        limit: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        try await self.database.read { db in
            let rows = try Row.fetchCursor(
                try db.cachedStatement(
                    sql: """
                        SELECT \(AuditRowReader.columns) FROM audit_records
                        WHERE writer = ? AND sequence > ? ORDER BY sequence LIMIT ?
                        """
                ),
                arguments: [writer, sequence, limit]
            )
            var records: [ChainedAuditRecord] = []
            while let row = try rows.next() {
                records.append(AuditRowReader.record(row))
            }
            return records
        }
    }

    /// Walks on along a chain.
    ///
    /// - Throws: `storeUnavailable`.
    package func walk(
        _ walker: AuditWalker,
        limit: Int
    ) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        do throws(GatewayError) {
            return try await self.walkOn(walker, limit: limit)
        } catch {
            guard let broken = error.cause as? AuditRowWalk.Broken else { throw error }
            return (broken.walker, broken.rows)
        }
    }

    private func walkOn(
        _ walker: AuditWalker,
        limit: Int
    ) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        let writer = walker.chain.writer
        return try await self.database.read { db in
            var walker = walker
            let row = try Row.fetchOne(
                try db.cachedStatement(
                    sql: "SELECT writer, sequence, hash, state, seal FROM audit_heads WHERE writer = ?"
                ),
                arguments: [writer]
            )
            walker.beginPage(
                head: try row.map { try Self.head(RowReader($0, of: "audit_heads")) },
                cut: walker.followsCuts ? try SQLiteAuditLedgerReader.cut(of: writer, db) : nil
            )
            let rows = try AuditRowWalk(db: db).walk(&walker, limit: limit)
            return (walker, rows)
        }
    }

    /// The writers that have records, rising.
    ///
    /// - Throws: `storeUnavailable`.
    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.database.read { db in
            // Jumps from writer to writer; DISTINCT would look at every record.
            let writers = try DatabaseValue.fetchAll(
                db,
                sql: """
                    WITH RECURSIVE writers (writer) AS (
                        SELECT min(writer) FROM audit_records
                        UNION ALL
                        SELECT (SELECT min(writer) FROM audit_records WHERE writer > writers.writer)
                        FROM writers WHERE writers.writer IS NOT NULL
                    )
                    SELECT writer FROM writers WHERE writer IS NOT NULL
                    """
            )
            // A number that no writer has stands for what is no number at all.
            return writers.map { Int.fromDatabaseValue($0) ?? 0 }
        }
    }

    /// A head whose state is none of the known ones comes with an empty seal, which is never genuine.
    private static func head(_ reader: RowReader) throws(DamagedValue) -> AuditHead {
        let state = AuditHead.State(rawValue: try reader.value("state"))
        return AuditHead(
            writer: try reader.value("writer"),
            sequence: try reader.value("sequence"),
            hash: try reader.bytes("hash"),
            state: state ?? .closed,
            seal: state == nil ? [] : try reader.bytes("seal")
        )
    }
}
