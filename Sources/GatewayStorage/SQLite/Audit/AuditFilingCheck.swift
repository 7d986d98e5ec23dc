import GRDB
import GatewayCore

/// Checks that look-ups lead to every record: that each span's row has its records' times and tenants.
///
/// A span is looked at in one read together with its rows, so that a gateway that writes meanwhile is no trouble.
struct AuditFilingCheck {
    let database: any SQLiteReading

    /// The first place of the first span that is not filed as it should be, or whose row leads to no record.
    func firstMisfiled() async throws(GatewayError) -> AuditPosition? {
        for writer in try await SQLiteAuditReader(reading: self.database).writersWithRecords() {
            var next: Int? = Int.min
            while let from = next {
                let (misfiled, following) = try await self.database.read { try Self.check(writer, from: from, $0) }
                if let misfiled { return misfiled }
                next = following
            }
        }
        return try await self.database.read { try Self.firstWithoutRecords($0) }
    }

    /// Whether a record's span is filed as it should be.
    func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool {
        try await self.database.read { try Self.check(place.writer, from: place.sequence, $0).misfiled == nil }
    }

    /// Checks the span of a writer's first record from a place on.
    ///
    /// - Returns: the span's first place if it is not as it should be, and where the next span begins, if there is one.
    private static func check(
        _ writer: Int,
        from place: Int,
        _ db: Database
    ) throws -> (misfiled: AuditPosition?, next: Int?) {
        let first = try Int.fetchOne(
            try db.cachedStatement(sql: "SELECT min(sequence) FROM audit_records WHERE writer = ? AND sequence >= ?"),
            arguments: [writer, place]
        )
        guard let first else { return (nil, nil) }
        let number = AuditSpans.number(of: first)
        let range = AuditRange(writer: writer, span: number)
        let isRight = try self.hasTimes(range, span: number, db) && self.hasTenants(range, span: number, db)
        return (isRight ? nil : AuditPosition(writer: writer, sequence: first), range.last + 1)
    }

    private static func hasTimes(_ range: AuditRange, span: Int, _ db: Database) throws -> Bool {
        let row = try Row.fetchOne(
            try db.cachedStatement(
                sql: """
                    SELECT min(time) AS earliest, max(time) AS latest,
                        (SELECT min_time FROM audit_spans WHERE writer = :writer AND span = :span) AS min_time,
                        (SELECT max_time FROM audit_spans WHERE writer = :writer AND span = :span) AS max_time
                    FROM audit_records WHERE writer = :writer AND sequence BETWEEN :first AND :last
                    """
            ),
            arguments: ["writer": range.writer, "span": span, "first": range.first, "last": range.last]
        )
        guard let row else { return false }
        let reader = RowReader(row, of: "audit_spans")
        guard let earliest: Int64 = try reader.optional("earliest"), let latest: Int64 = try reader.optional("latest"),
            let minTime: Int64 = try reader.optional("min_time"), let maxTime: Int64 = try reader.optional("max_time")
        else { return false }
        return (minTime, maxTime) == (earliest, latest)
    }

    private static func hasTenants(_ range: AuditRange, span: Int, _ db: Database) throws -> Bool {
        // Compared as bytes: a tenant with a zero byte is kept as a blob among the records.
        let there = try self.pairs(
            db.cachedStatement(
                sql: """
                    SELECT DISTINCT CAST(tenant AS BLOB), \(AuditRowReader.tenantUID) FROM audit_records
                    WHERE writer = ? AND sequence BETWEEN ? AND ? AND tenant IS NOT NULL
                    """
            ),
            [range.writer, range.first, range.last]
        )
        let filed = try self.pairs(
            db.cachedStatement(
                sql: "SELECT CAST(tenant AS BLOB), uid FROM audit_tenant_spans WHERE writer = ? AND span = ?"
            ),
            [range.writer, span]
        )
        return there == filed
    }

    private static func pairs(_ statement: Statement, _ arguments: StatementArguments) throws -> Set<[DatabaseValue]> {
        let rows = try Row.fetchCursor(statement, arguments: arguments)
        var pairs: Set<[DatabaseValue]> = []
        while let row = try rows.next() { pairs.insert([row[0], row[1]]) }
        return pairs
    }

    /// The first place of a span that has a row and no record.
    private static func firstWithoutRecords(_ db: Database) throws -> AuditPosition? {
        for table in ["audit_spans", "audit_tenant_spans"] {
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT writer, span FROM (SELECT DISTINCT writer, span FROM \(table)) AS filed
                    WHERE NOT EXISTS (
                        SELECT 1 FROM audit_records WHERE writer = filed.writer
                            AND sequence > filed.span * \(AuditSpans.size)
                            AND sequence <= (filed.span + 1) * \(AuditSpans.size)
                    ) ORDER BY writer, span LIMIT 1
                    """
            )
            guard let row else { continue }
            let reader = RowReader(row, of: table)
            let range = AuditRange(writer: try reader.value("writer"), span: try reader.value("span"))
            return AuditPosition(writer: range.writer, sequence: range.first)
        }
        return nil
    }
}
