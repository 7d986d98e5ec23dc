import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Finds a page of the audit within one read.
///
/// The spans tell where to look. After each span the time is looked at, so that a rare match costs its seeker several
/// pages instead of the gateway a long read. A page has looked at one span at least, so that pages come to an end.
struct AuditPager {
    private let query: AuditQuery
    private let window: AuditWindow
    private let target: [UInt8]?
    private var records: [ChainedAuditRecord] = []

    private init(_ query: AuditQuery) {
        self.query = query
        self.window = AuditWindow(query)
        self.target = query.target.map { target in
            var bytes: [UInt8] = []
            target.append(to: &bytes)
            return bytes
        }
    }

    /// Finds a page.
    ///
    /// - Parameters:
    ///   - query: what to look for.
    ///   - db: where.
    ///   - isTimeUp: whether the page is to end with what it has found.
    /// - Returns: the page.
    /// - Throws: what the database throws.
    static func page(_ query: AuditQuery, _ db: Database, isTimeUp: () -> Bool) throws -> AuditPage {
        var pager = AuditPager(query)
        let next = try pager.collect(db, isTimeUp: isTimeUp)
        return AuditPage(records: pager.records, next: next)
    }

    /// - Returns: where the next page goes on; `nil` when everything was looked at.
    private mutating func collect(_ db: Database, isTimeUp: () -> Bool) throws -> AuditPosition? {
        let statement = try db.cachedStatement(sql: Self.select)
        let spans = try AuditSpans.cursor(for: self.query, db)
        var last: AuditRange?
        while let span = try spans.next().map({ try AuditSpans.Times($0) }) {
            guard span.range != last else { continue }
            if last != nil, isTimeUp() {
                return AuditPosition(writer: span.range.writer, sequence: span.range.last &+ 1)
            }
            last = span.range
            guard span.overlaps(self.window), let places = span.range.clipped(before: self.query.before) else {
                continue
            }
            let rows = try Row.fetchCursor(statement, arguments: self.arguments(places))
            while let row = try rows.next() {
                let record = AuditRowReader.record(row)
                guard self.query.matches(record.record) else { continue }
                if self.records.count >= max(1, self.query.limit) {
                    return self.records.last.map { AuditPosition(writer: $0.writer, sequence: $0.sequence) }
                }
                self.records.append(record)
            }
        }
        return nil
    }

    /// Conditions on the body only sort out most of the others: what is looked for may stand in another field.
    private static let select = """
        SELECT \(AuditRowReader.columns) FROM audit_records
        WHERE writer = :writer AND sequence BETWEEN :first AND :last
            AND (:tenant IS NULL OR tenant = :tenant)
            AND time >= :from AND time < :to
            AND (:uid IS NULL OR \(AuditRowReader.tenantUID) = :uid)
            AND (:action IS NULL OR instr(body, :action) > 0)
            AND (:outcome IS NULL OR instr(body, :outcome) > 0)
            AND (:code IS NULL OR instr(body, :code) > 0)
            AND (:principal IS NULL OR instr(body, :principal) > 0)
            AND (:request IS NULL OR instr(body, :request) > 0)
            AND (:message IS NULL OR instr(body, :message) > 0)
            AND (:target IS NULL OR instr(body, :target) > 0)
        ORDER BY sequence DESC
        """

    private func arguments(_ places: AuditRange) -> StatementArguments {
        [
            "writer": places.writer, "first": places.first, "last": places.last,
            "tenant": self.query.tenant, "from": self.window.from, "to": self.window.to,
            "uid": self.query.tenantUID.map { Data(AuditBody.bytes(of: $0)) },
            "action": self.query.action.map { Data($0.utf8) },
            "outcome": self.query.outcome.map { Data($0.rawValue.utf8) },
            "code": self.query.code.map { Data($0.utf8) },
            "principal": self.query.principal.map { Data($0.utf8) },
            "request": self.query.requestID.map { Data($0.utf8) },
            "message": self.query.messageID.map { Data($0.utf8) },
            "target": self.target.map { Data($0) },
        ]
    }
}
