import GRDB
import GatewayCore

/// The times of thousands of neighbouring records in one row, so that a range of time is found without an index on
/// every record. Exact whatever the clock did: a span is looked into when any of its times may match.
enum AuditSpans {
    /// Records of one span.
    static let size = 4_096

    /// The span of a place.
    static func number(of sequence: Int) -> Int {
        (sequence - 1) / self.size
    }

    /// Widens the spans of records to hold their times.
    static func note(_ records: [ChainedAuditRecord], _ db: Database) throws {
        var rest = records[...]
        while let first = rest.first {
            let span = Self.number(of: first.sequence)
            let end = rest.firstIndex { $0.writer != first.writer || Self.number(of: $0.sequence) != span }
            let run = rest[..<(end ?? rest.endIndex)]
            rest = rest[run.endIndex...]

            var (earliest, latest) = (first.record.time.microseconds, first.record.time.microseconds)
            for record in run {
                earliest = min(earliest, record.record.time.microseconds)
                latest = max(latest, record.record.time.microseconds)
            }
            try db.cachedStatement(
                sql: """
                    INSERT INTO audit_spans (writer, span, min_time, max_time) VALUES (?, ?, ?, ?)
                    ON CONFLICT (writer, span) DO UPDATE SET
                        min_time = min(min_time, excluded.min_time), max_time = max(max_time, excluded.max_time)
                    """
            ).execute(arguments: [first.writer, span, earliest, latest])
        }
    }

    /// The places whose time may lie in a window, newest first; neighbouring spans come as one range.
    static func ranges(in window: AuditWindow, _ db: Database) throws -> [AuditRange] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT writer, span FROM audit_spans WHERE max_time >= ? AND min_time < ?
                ORDER BY writer DESC, span DESC
                """,
            arguments: [window.from, window.to]
        )
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
