import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
            let entry = run[index].entry
            guard let tenant = entry.tenant, entries.insert(tenant, uid: entry.tenantUID) else { continue }
            try db.cachedStatement(
                sql: """
                    INSERT INTO audit_tenant_spans (tenant, writer, span, uid) VALUES (?, ?, ?, ?)
                    ON CONFLICT (tenant, writer, span, uid) DO NOTHING
                    """
            )
            .execute(arguments: [tenant, writer, span, Data(AuditBody.bytes(of: entry.tenantUID))])
        }
    }

    /// The places of a span, and when its records were made.
    struct Times {
        let range: AuditRange
        private let minTime: Int64
        private let maxTime: Int64

        init(_ row: Row) throws {
            let reader = RowReader(row, of: "audit_spans")
            self.range = AuditRange(writer: try reader.value("writer"), span: try reader.value("span"))
            (self.minTime, self.maxTime) = (try reader.value("min_time"), try reader.value("max_time"))
        }

        func overlaps(_ window: AuditWindow) -> Bool {
            self.maxTime >= window.from && self.minTime < window.to
        }
    }

    /// The spans that may hold what is looked for, whenever it was made; newest first, as rows of ``Times``.
    ///
    /// A span that has records of two tenants of one name comes twice.
    ///
    /// Each step takes about the same time, so that whoever reads can stop at any.
    static func cursor(for query: AuditQuery, _ db: Database) throws -> RowCursor {
        let writer = query.before?.writer ?? .max
        let span = query.before.map { self.number(of: $0.sequence &- 1) } ?? .max
        guard let tenant = query.tenant else {
            return try Row.fetchCursor(
                db,
                sql: """
                    SELECT writer, span, min_time, max_time FROM audit_spans
                    WHERE (writer, span) <= (?, ?) ORDER BY writer DESC, span DESC
                    """,
                arguments: [writer, span]
            )
        }
        return try Row.fetchCursor(
            db,
            sql: """
                SELECT filed.writer, filed.span, min_time, max_time
                FROM audit_tenant_spans AS filed CROSS JOIN audit_spans USING (writer, span)
                WHERE filed.tenant = :tenant AND (filed.writer, filed.span) <= (:writer, :span)
                    AND (:uid IS NULL OR filed.uid = :uid)
                ORDER BY filed.writer DESC, filed.span DESC
                """,
            arguments: [
                "tenant": tenant, "writer": writer, "span": span,
                "uid": query.tenantUID.map { Data(AuditBody.bytes(of: $0)) },
            ]
        )
    }
}
