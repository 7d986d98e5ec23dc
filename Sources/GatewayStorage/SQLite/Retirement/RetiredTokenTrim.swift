import GRDB
import GatewayCore

/// Drops entries of the list of retired tokens within a transaction.
struct RetiredTokenTrim {
    /// The most entries that one round drops, so that other writes need not wait long.
    private static let maxDropped = 20_000

    let db: Database

    /// Drops what is too old, then the oldest of the tenant that has most.
    ///
    /// What one round leaves over goes with the next.
    func trim(before cutoff: Timestamp, keeping maxEntries: Int) throws -> [RetiredTokenEntry] {
        var dropped = try self.drop(
            """
            SELECT \(RetiredTokenRows.entryColumns) FROM retired_tokens
            WHERE reported_at < ? ORDER BY reported_at LIMIT ?
            """,
            [cutoff.microseconds, Self.maxDropped]
        )
        while dropped.count < Self.maxDropped, let excess = try self.excess(over: maxEntries) {
            dropped += try self.drop(
                """
                SELECT \(RetiredTokenRows.entryColumns) FROM retired_tokens
                WHERE tenant = ? ORDER BY reported_at, key LIMIT ?
                """,
                [excess.tenant, min(excess.count, Self.maxDropped - dropped.count)]
            )
        }
        return dropped
    }

    /// Which tenant has to give up how many entries, if there are too many.
    ///
    /// It gives up no more than it has above the next largest, and at least a hundredth of what it has, so that tenants
    /// of about the same size share the loss in few steps.
    private func excess(over maxEntries: Int) throws -> (tenant: String, count: Int)? {
        let total = try Int.fetchOne(self.db, sql: "SELECT count(*) FROM retired_tokens") ?? 0
        guard total > maxEntries else { return nil }
        let rows = try Row.fetchAll(
            self.db,
            sql: "SELECT tenant, count(*) AS entries FROM retired_tokens GROUP BY tenant ORDER BY entries DESC LIMIT 2"
        )
        let sizes = try rows.map { row in
            let reader = RowReader(row, of: "retired_tokens")
            return (
                tenant: try reader.value("tenant", as: String.self), count: try reader.value("entries", as: Int.self)
            )
        }
        guard let largest = sizes.first else { return nil }
        let lead = largest.count - (sizes.count > 1 ? sizes[1].count : 0)
        return (largest.tenant, min(total - maxEntries, max(lead, largest.count / 100, 1)))
    }

    private func drop(_ sql: String, _ arguments: StatementArguments) throws -> [RetiredTokenEntry] {
        let entries = try Row.fetchAll(self.db, sql: sql, arguments: arguments).map(RetiredTokenRows.entry)
        let statement = try self.db.cachedStatement(sql: "DELETE FROM retired_tokens WHERE tenant = ? AND key = ?")
        for entry in entries {
            try statement.execute(arguments: [entry.tenant.text, Int64(bitPattern: entry.key)])
        }
        return entries
    }
}
