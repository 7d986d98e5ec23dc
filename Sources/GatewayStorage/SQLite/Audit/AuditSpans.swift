import GRDB
import GatewayCore

/// What thousands of neighbouring records have in common.
///
/// Times and tenants are found by it without an index on every record. It is exact whatever the clock did: a span is
/// looked into when any of its records may match.
enum AuditSpans {
    /// Records of one span.
    static let size = 4_096

    /// The span of a place.
    static func number(of sequence: Int) -> Int {
        (sequence &- 1) / self.size
    }

    /// Widens the spans of records to hold their times, and enters their tenants.
    ///
    /// - Parameters:
    ///   - records: what a commit adds.
    ///   - memory: what is known to be entered already.
    ///   - db: the transaction.
    /// - Returns: what is entered now, to be remembered when the transaction is committed.
    /// - Throws: what the database throws.
    static func note(
        _ records: [ChainedAuditRecord],
        beyond memory: AuditSpanMemory.Entries,
        _ db: Database
    ) throws -> AuditSpanMemory.Entries {
        var entries = memory
        var rest = records[...]
        while let first = rest.first {
            let span = Self.number(of: first.sequence)
            let end = rest.indices.first {
                rest[$0].writer != first.writer || Self.number(of: rest[$0].sequence) != span
            }
            let run = rest[..<(end ?? rest.endIndex)]
            rest = rest[run.endIndex...]
            try self.noteTimes(run, writer: first.writer, span: span, db)
            try self.noteTenants(run, writer: first.writer, span: span, &entries, db)
        }
        return entries
    }

    private static func noteTimes(
        _ run: ArraySlice<ChainedAuditRecord>,
        writer: Int,
        span: Int,
        _ db: Database
    ) throws {
        var (earliest, latest) = (Int64.max, Int64.min)
        for index in run.indices {
            let time = run[index].entry.time.microseconds
            (earliest, latest) = (min(earliest, time), max(latest, time))
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO audit_spans (writer, span, min_time, max_time) VALUES (?, ?, ?, ?)
                ON CONFLICT (writer, span) DO UPDATE SET
                    min_time = min(min_time, excluded.min_time), max_time = max(max_time, excluded.max_time)
                """
        )
        .execute(arguments: [writer, span, earliest, latest])
    }

    private static func noteTenants(
        _ run: ArraySlice<ChainedAuditRecord>,
        writer: Int,
        span: Int,
        _ entries: inout AuditSpanMemory.Entries,
        _ db: Database
    ) throws {
        entries.turn(toWriter: writer, span: span)
        for index in run.indices {
            guard let tenant = run[index].entry.tenant, entries.insert(tenant) else { continue }
            try db.cachedStatement(
                sql: """
                    INSERT INTO audit_tenant_spans (tenant, writer, span) VALUES (?, ?, ?)
                    ON CONFLICT (tenant, writer, span) DO NOTHING
                    """
            )
            .execute(arguments: [tenant, writer, span])
        }
    }

    /// The places that may hold a tenant's records, or anybody's, of a window of time, newest first; neighbouring spans
    /// come as one range.
    static func ranges(of tenant: String?, in window: AuditWindow, _ db: Database) throws -> [AuditRange] {
        let rows: RowCursor
        if let tenant {
            rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT writer, span FROM audit_tenant_spans CROSS JOIN audit_spans USING (writer, span)
                    WHERE tenant = ? AND max_time >= ? AND min_time < ? ORDER BY writer DESC, span DESC
                    """,
                arguments: [tenant, window.from, window.to]
            )
        } else {
            rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT writer, span FROM audit_spans
                    WHERE max_time >= ? AND min_time < ? ORDER BY writer DESC, span DESC
                    """,
                arguments: [window.from, window.to]
            )
        }
        var ranges: [AuditRange] = []
        while let row = try rows.next() {
            let reader = RowReader(row, of: "audit_spans")
            let range = AuditRange(writer: try reader.value("writer"), span: try reader.value("span"))
            if let last = ranges.last, last.writer == range.writer, last.first == range.last &+ 1 {
                ranges[ranges.count - 1].first = range.first
            } else {
                ranges.append(range)
            }
        }
        return ranges
    }
}
