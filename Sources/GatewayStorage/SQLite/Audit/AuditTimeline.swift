import GRDB
import GatewayCore

/// Reads when the records were made: from the spans, and record by record where a span is too long a time.
struct AuditTimeline {
    let database: any SQLiteReading
    let maxLength: Duration

    private struct Span {
        let range: AuditRange
        let minTime: Int64
        let maxTime: Int64
    }

    func pieces() async throws(GatewayError) -> [AuditTimePiece] {
        let spans = try await self.database.read { db in
            var spans: [Span] = []
            let rows = try Row.fetchCursor(
                db,
                sql: "SELECT writer, span, min_time, max_time FROM audit_spans ORDER BY writer, span"
            )
            while let row = try rows.next() {
                let reader = RowReader(row, of: "audit_spans")
                let range = AuditRange(writer: try reader.value("writer"), span: try reader.value("span"))
                spans.append(
                    Span(range: range, minTime: try reader.value("min_time"), maxTime: try reader.value("max_time"))
                )
            }
            return spans
        }
        var pieces: [AuditTimePiece] = []
        for span in spans {
            let (length, overflows) = span.maxTime.subtractingReportingOverflow(span.minTime)
            if !overflows, length <= self.maxMicroseconds {
                pieces += try await self.whole(span)
            } else {
                pieces += try await self.split(span.range)
            }
        }
        return pieces
    }

    private var maxMicroseconds: Int64 { self.maxLength.components.seconds * 1_000_000 }

    /// A span as one piece, as far as it has records.
    private func whole(_ span: Span) async throws(GatewayError) -> [AuditTimePiece] {
        let range = span.range
        let places = try await self.database.read { db -> (Int, Int)? in
            let row = try Row.fetchOne(
                try db.cachedStatement(
                    sql: """
                        SELECT (SELECT min(sequence) FROM audit_records WHERE writer = ? AND sequence BETWEEN ? AND ?)
                            AS first,
                            (SELECT max(sequence) FROM audit_records WHERE writer = ? AND sequence BETWEEN ? AND ?)
                            AS last
                        """
                ),
                arguments: [range.writer, range.first, range.last, range.writer, range.first, range.last]
            )
            guard let row else { return nil }
            let reader = RowReader(row, of: "audit_records")
            guard let first: Int = try reader.optional("first"), let last: Int = try reader.optional("last") else {
                return nil
            }
            return (first, last)
        }
        guard let (first, last) = places else { return [] }
        return [
            AuditTimePiece(
                writer: range.writer,
                first: first,
                last: last,
                minTime: Timestamp(microseconds: span.minTime),
                maxTime: Timestamp(microseconds: span.maxTime)
            )
        ]
    }

    /// A span in pieces of neighbours, none longer than allowed.
    private func split(_ range: AuditRange) async throws(GatewayError) -> [AuditTimePiece] {
        let limit = self.maxMicroseconds
        return try await self.database.read { db in
            var pieces: [AuditTimePiece] = []
            let rows = try Row.fetchCursor(
                try db.cachedStatement(
                    sql: """
                        SELECT sequence, time FROM audit_records
                        WHERE writer = ? AND sequence BETWEEN ? AND ? ORDER BY sequence
                        """
                ),
                arguments: [range.writer, range.first, range.last]
            )
            while let row = try rows.next() {
                let reader = RowReader(row, of: "audit_records")
                let (sequence, time): (Int, Timestamp) = (try reader.value("sequence"), try reader.time("time"))
                if var piece = pieces.last {
                    piece.last = sequence
                    piece.minTime = min(piece.minTime, time)
                    piece.maxTime = max(piece.maxTime, time)
                    let (length, overflows) = piece.maxTime.microseconds
                        .subtractingReportingOverflow(piece.minTime.microseconds)
                    if !overflows, length <= limit {
                        pieces[pieces.count - 1] = piece
                        continue
                    }
                }
                pieces.append(
                    AuditTimePiece(writer: range.writer, first: sequence, last: sequence, minTime: time, maxTime: time)
                )
            }
            return pieces
        }
    }
}
