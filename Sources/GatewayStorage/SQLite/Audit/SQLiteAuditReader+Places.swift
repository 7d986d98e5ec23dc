import GRDB
package import GatewayCore

extension SQLiteAuditReader {
    /// The places between which a writer's records of a window of time lie, whatever the clock did.
    ///
    /// - Parameters:
    ///   - writer: which writer.
    ///   - from: only records at or after this moment.
    ///   - to: only records before this moment.
    /// - Returns: the first and last such place; `nil` when there is none.
    /// - Throws: `storeUnavailable`.
    package func places(
        of writer: Int,
        from: Timestamp?,
        to: Timestamp?
    ) async throws(GatewayError) -> ClosedRange<Int>? {
        let (earliest, end): (Int64, Int64) = (from?.microseconds ?? .min, to?.microseconds ?? .max)
        return try await self.database.read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT min(sequence), max(sequence) FROM audit_records
                    WHERE writer = ? AND time >= ? AND time < ?
                    """,
                arguments: [writer, earliest, end]
            )
            guard let row, let first = row[0] as Int?, let last = row[1] as Int?, first <= last else { return nil }
            return first...last
        }
    }
}
