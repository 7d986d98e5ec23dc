import GRDB
import GatewayCore

/// Finds a page of the audit within one read.
///
/// A tenant's records come through the tenant's index, times through the spans; the other conditions are looked at row
/// by row. One page looks at a bounded number of rows, so that a rare match costs its seeker several pages instead of
/// the gateway a long read.
struct AuditPager {
    /// The most rows that one page looks at.
    static let maxExaminedRows = 50_000

    private let query: AuditQuery
    private let window: AuditWindow?
    private let target: [UInt8]?
    private var records: [ChainedAuditRecord] = []
    private var examinedRows = 0

    private init(_ query: AuditQuery) {
        self.query = query
        self.window = AuditWindow(query)
        self.target = query.target.map { target in
            var bytes: [UInt8] = []
            target.append(to: &bytes)
            return bytes
        }
    }

    static func page(_ query: AuditQuery, _ db: Database) throws -> AuditPage {
        var pager = AuditPager(query)
        let next = try pager.collect(db)
        return AuditPage(records: pager.records, next: next)
    }

    /// - Returns: where the next page goes on; `nil` when everything was looked at.
    private mutating func collect(_ db: Database) throws -> AuditPosition? {
        for range in try self.ranges(db) {
            guard let range = range.clipped(before: self.query.before) else { continue }
            let rows = try self.rows(of: range, db)
            while let row = try rows.next() {
                var reader = AuditRowReader(row)
                if self.matches(&reader) {
                    if self.records.count >= max(1, self.query.limit) {
                        return self.records.last.map { AuditPosition(writer: $0.writer, sequence: $0.sequence) }
                    }
                    self.records.append(reader.record())
                }
                self.examinedRows += 1
                if self.examinedRows >= Self.maxExaminedRows { return reader.position() }
            }
        }
        return nil
    }

    private func ranges(_ db: Database) throws -> [AuditRange] {
        if let window = self.window { return try AuditSpans.ranges(in: window, db) }
        return try Row.fetchAll(db, sql: "SELECT writer, sequence FROM audit_heads ORDER BY writer DESC").map { row in
            let reader = RowReader(row, of: "audit_heads")
            return AuditRange(writer: try reader.value("writer"), first: 1, last: try reader.value("sequence"))
        }
    }

    private func rows(of range: AuditRange, _ db: Database) throws -> RowCursor {
        if let tenant = self.query.tenant {
            let statement = try db.cachedStatement(
                sql: """
                    SELECT \(AuditColumn.list) FROM audit_records INDEXED BY audit_records_by_tenant
                    WHERE tenant = ? AND writer = ? AND sequence BETWEEN ? AND ? ORDER BY sequence DESC
                    """
            )
            return try Row.fetchCursor(statement, arguments: [tenant, range.writer, range.first, range.last])
        }
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(AuditColumn.list) FROM audit_records
                WHERE writer = ? AND sequence BETWEEN ? AND ? ORDER BY sequence DESC
                """
        )
        return try Row.fetchCursor(statement, arguments: [range.writer, range.first, range.last])
    }

    private func matches(_ reader: inout AuditRowReader) -> Bool {
        if let window = self.window {
            // The window may be narrower than what was asked, by a message's own time.
            let time = Int64(reader.number(.time))
            guard time >= window.from, time < window.to else { return false }
        }
        if let action = self.query.action, reader.text(.action) != action { return false }
        if let outcome = self.query.outcome, reader.text(.outcome) != outcome.rawValue { return false }
        if let messageID = self.query.messageID, reader.optionalText(.messageID) != messageID { return false }
        if let target = self.target, !Self.holds(reader.blob(.targets), target) { return false }
        return true
    }

    /// Whether a list of pseudonyms has one of them.
    private static func holds(_ targets: [UInt8], _ target: [UInt8]) -> Bool {
        stride(from: 0, to: targets.count, by: Pseudonym.byteCount).contains { start in
            targets[start...].prefix(Pseudonym.byteCount).elementsEqual(target)
        }
    }
}
