import GRDB
package import GatewayCore

/// Reads the audit's chains back from the gateway's own file.
package struct SQLiteAuditReader: AuditReader {
    private let database: any SQLiteReading

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

    /// The writers that have records, rising.
    ///
    /// - Throws: `storeUnavailable`.
    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.database.read { db in
            // Jumps from writer to writer; DISTINCT would look at every record.
            try Int.fetchAll(
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
