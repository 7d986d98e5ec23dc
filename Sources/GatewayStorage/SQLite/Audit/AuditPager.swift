import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Finds a page of the audit within one read.
///
/// The spans tell where to look. One page looks at a bounded number of places, so that a rare match costs its seeker
/// several pages instead of the gateway a long read.
struct AuditPager {
    /// The most places that one page looks at.
    static let maxExaminedPlaces = 100 * AuditSpans.size

    private let maxExaminedPlaces: Int
    private let query: AuditQuery
    private let window: AuditWindow
    private let target: [UInt8]?
    private var records: [ChainedAuditRecord] = []
    private var examinedPlaces = 0

    private init(_ query: AuditQuery, maxExaminedPlaces: Int) {
        self.maxExaminedPlaces = maxExaminedPlaces
        self.query = query
        self.window = AuditWindow(query)
        self.target = query.target.map { target in
            var bytes: [UInt8] = []
            target.append(to: &bytes)
            return bytes
        }
    }

    static func page(
        _ query: AuditQuery,
        maxExaminedPlaces: Int = Self.maxExaminedPlaces,
        _ db: Database
    ) throws -> AuditPage {
        var pager = AuditPager(query, maxExaminedPlaces: maxExaminedPlaces)
        let next = try pager.collect(db)
        return AuditPage(records: pager.records, next: next)
    }

    /// - Returns: where the next page goes on; `nil` when everything was looked at.
    private mutating func collect(_ db: Database) throws -> AuditPosition? {
        let statement = try db.cachedStatement(sql: Self.select)
        for range in try AuditSpans.ranges(of: self.query.tenant, in: self.window, db) {
            guard var range = range.clipped(before: self.query.before) else { continue }
            while let places = range.popNewest() {
                if self.examinedPlaces >= self.maxExaminedPlaces {
                    return AuditPosition(writer: places.writer, sequence: places.last &+ 1)
                }
                self.examinedPlaces += places.last - places.first + 1
                let rows = try Row.fetchCursor(statement, arguments: self.arguments(places))
                while let row = try rows.next() {
                    let record = AuditRowReader.record(row)
                    guard self.matches(record.record) else { continue }
                    if self.records.count >= max(1, self.query.limit) {
                        return self.records.last.map { AuditPosition(writer: $0.writer, sequence: $0.sequence) }
                    }
                    self.records.append(record)
                }
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
            AND (:action IS NULL OR instr(body, :action) > 0)
            AND (:outcome IS NULL OR instr(body, :outcome) > 0)
            AND (:message IS NULL OR instr(body, :message) > 0)
            AND (:target IS NULL OR instr(body, :target) > 0)
        ORDER BY sequence DESC
        """

    private func arguments(_ places: AuditRange) -> StatementArguments {
        [
            "writer": places.writer, "first": places.first, "last": places.last,
            "tenant": self.query.tenant, "from": self.window.from, "to": self.window.to,
            "action": self.query.action.map { Data($0.utf8) },
            "outcome": self.query.outcome.map { Data($0.rawValue.utf8) },
            "message": self.query.messageID.map { Data($0.utf8) },
            "target": self.target.map { Data($0) },
        ]
    }

    private func matches(_ record: AuditRecord) -> Bool {
        if let action = self.query.action, record.action != action { return false }
        if let outcome = self.query.outcome, record.outcome != outcome { return false }
        if let messageID = self.query.messageID, record.messageID != messageID { return false }
        if let target = self.target, !Self.holds(record.targets, target) { return false }
        return true
    }

    /// Whether a list of pseudonyms has one of them.
    private static func holds(_ targets: [UInt8], _ target: [UInt8]) -> Bool {
        stride(from: 0, to: targets.count, by: Pseudonym.byteCount)
            .contains { start in
                targets[start...].prefix(Pseudonym.byteCount).elementsEqual(target)
            }
    }
}
