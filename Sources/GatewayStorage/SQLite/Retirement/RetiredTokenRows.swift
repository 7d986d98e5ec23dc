import GRDB
import GatewayCore

/// Reads the tables of retired tokens.
enum RetiredTokenRows {
    private static let table = "retired_tokens"

    /// The columns that ``entry(_:)`` reads.
    static let entryColumns = "tenant, key, state, reported_at, replacement"

    static func entries(_ db: Database) throws -> [RetiredTokenEntry] {
        let rows = try Row.fetchCursor(
            db,
            sql: "SELECT \(self.entryColumns) FROM retired_tokens ORDER BY reported_at, tenant, key"
        )
        var entries: [RetiredTokenEntry] = []
        while let row = try rows.next() { entries.append(try self.entry(row)) }
        return entries
    }

    static func entry(_ row: Row) throws -> RetiredTokenEntry {
        let reader = RowReader(row, of: self.table)
        return RetiredTokenEntry(
            tenant: try reader.parsed("tenant") { TenantID($0) },
            key: try self.key(reader),
            state: try reader.parsed("state") { RetiredTokenState(rawValue: $0) },
            reportedAt: try reader.time("reported_at"),
            replacement: try reader.value("replacement")
        )
    }

    static func guards(_ db: Database) throws -> [TenantID: PurgeGuard] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT tenant, sent, unregistered, aged_at, surplus, jump_since, jump_sent, jump_unregistered
                FROM retired_token_books
                """
        )
        var guards: [TenantID: PurgeGuard] = [:]
        while let row = try rows.next() {
            let reader = RowReader(row, of: "retired_token_books")
            var phase = PurgeGuard.Phase.steady
            if let since = try reader.optionalTime("jump_since") {
                let tally = PurgeGuard.Tally(
                    sent: try reader.value("jump_sent"),
                    unregistered: try reader.value("jump_unregistered")
                )
                phase = .jump(since: since, tally)
            }
            guards[try reader.parsed("tenant") { TenantID($0) }] = PurgeGuard(
                phase: phase,
                history: PurgeGuard.Tally(
                    sent: try reader.value("sent"),
                    unregistered: try reader.value("unregistered")
                ),
                agedAt: try reader.time("aged_at"),
                surplus: try reader.value("surplus")
            )
        }
        return guards
    }

    static func page(
        of tenant: TenantID,
        after position: Int,
        limit: Int,
        _ db: Database
    ) throws -> RetiredTokenPage {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT key, kind, state, since, reported_at, replacement, sealed, position FROM retired_tokens
                WHERE tenant = ? AND position > ? ORDER BY position LIMIT ?
                """,
            arguments: [tenant.text, position, limit + 1]
        )
        let shown = rows.prefix(limit)
        let last = try shown.last.map { try RowReader($0, of: self.table).value("position", as: Int.self) }
        return RetiredTokenPage(
            rows: try shown.map(self.row),
            position: last ?? position,
            hasMore: rows.count > limit
        )
    }

    private static func row(_ row: Row) throws -> RetiredTokenRow {
        let reader = RowReader(row, of: self.table)
        return RetiredTokenRow(
            key: try self.key(reader),
            kind: try reader.parsed("kind") { RetiredTokenKind(rawValue: $0) },
            state: try reader.parsed("state") { RetiredTokenState(rawValue: $0) },
            since: try reader.time("since"),
            reportedAt: try reader.time("reported_at"),
            replacement: try reader.value("replacement"),
            sealed: try reader.bytes("sealed")
        )
    }

    private static func key(_ reader: RowReader) throws(DamagedValue) -> UInt64 {
        UInt64(bitPattern: try reader.value("key", as: Int64.self))
    }
}
