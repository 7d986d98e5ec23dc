package import GatewayCore

/// The list of retired tokens, and each tenant's purge guard.
package struct SQLRetiredTokenStore: RetiredTokenStore {
    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func load() async throws(GatewayError) -> RetiredTokenContents {
        try await self.database.read(scope: .gateway) { db in
            RetiredTokenContents(
                entries: try db.rows(
                    "SELECT \(Self.entryColumns) FROM retired_tokens ORDER BY reported_at, tenant, key",
                    [],
                    Self.entry
                ),
                guards: try Self.guards(db)
            )
        }
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            var writer = RetiredTokenWriter(db: db)
            for change in changes { try writer.apply(change) }
            try writer.finish()
        }
    }

    package func page(
        of tenant: TenantID,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenPage {
        try await self.database.read(scope: .tenant(tenant.text)) { db in
            let found = try db.rows(
                """
                SELECT position, key, kind, state, since, reported_at, replacement, sealed FROM retired_tokens
                WHERE tenant = $1 AND position > $2 ORDER BY position LIMIT $3
                """,
                [.text(tenant), .int(position), .int(limit + 1)]
            ) { (position: try $0.int(0), row: try Self.row($0)) }
            let shown = found.prefix(limit)
            return RetiredTokenPage(
                rows: shown.map(\.row),
                position: shown.last?.position ?? position,
                hasMore: found.count > limit
            )
        }
    }

    package func trim(
        reportedBefore cutoff: Timestamp,
        keeping maxEntries: Int
    ) async throws(GatewayError) -> [RetiredTokenEntry] {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            try RetiredTokenTrim(db: db).trim(before: cutoff, keeping: maxEntries)
        }
    }

    // MARK: Rows

    /// The columns that ``entry(_:)`` reads.
    fileprivate static let entryColumns = "tenant, key, state, reported_at, replacement"

    fileprivate static func entry(_ row: SQLRow) throws -> RetiredTokenEntry {
        RetiredTokenEntry(
            tenant: try row.tenant(0),
            key: UInt64(bitPattern: try row.int64(1)),
            state: try row.parsed(2) { RetiredTokenState(rawValue: $0) },
            reportedAt: try row.time(3),
            replacement: try Self.replacement(row, 4)
        )
    }

    private static func row(_ row: SQLRow) throws -> RetiredTokenRow {
        RetiredTokenRow(
            key: UInt64(bitPattern: try row.int64(1)),
            kind: try row.parsed(2) { RetiredTokenKind(rawValue: $0) },
            state: try row.parsed(3) { RetiredTokenState(rawValue: $0) },
            since: try row.time(4),
            reportedAt: try row.time(5),
            replacement: try Self.replacement(row, 6),
            sealed: try row.bytes(7)
        )
    }

    private static func replacement(_ row: SQLRow, _ column: Int) throws -> UInt16 {
        guard let bits = UInt16(exactly: try row.int64(column)) else { throw row.damaged(column) }
        return bits
    }

    private static func guards(_ db: any SQLConnection) throws -> [TenantID: PurgeGuard] {
        let guards = try db.rows(
            """
            SELECT tenant, sent, unregistered, aged_at, surplus, jump_since, jump_sent, jump_unregistered
            FROM retired_token_books
            """
        ) { row in
            var phase = PurgeGuard.Phase.steady
            if let since = try row.optionalTime(5) {
                phase = .jump(
                    since: since,
                    PurgeGuard.Tally(sent: try row.real(6), unregistered: try row.real(7))
                )
            }
            let purgeGuard = PurgeGuard(
                phase: phase,
                history: PurgeGuard.Tally(sent: try row.real(1), unregistered: try row.real(2)),
                agedAt: try row.time(3),
                surplus: try row.int(4)
            )
            return (try row.tenant(0), purgeGuard)
        }
        return Dictionary(uniqueKeysWithValues: guards)
    }
}

/// Makes changes within a transaction.
private struct RetiredTokenWriter {
    /// The last positions given away, of the tenants that the transaction has met; `nil` for one that is gone.
    private var positions: [RetiredTokenOwner: Int?] = [:]
    private let db: any SQLConnection

    init(db: any SQLConnection) {
        self.db = db
    }

    mutating func apply(_ change: RetiredTokenChange) throws {
        switch change {
        case .put(let owner, let row, let keepsSince):
            guard try self.isThere(owner) else { return }
            try self.put(row, of: owner, keepsSince: keepsSince)
        case .move(let owner, let keys, let state):
            guard try self.isThere(owner) else { return }
            for key in keys {
                let position = state.isFed ? self.nextPosition(of: owner) : nil
                try self.db.execute(
                    "UPDATE retired_tokens SET state = $3, position = $4 WHERE tenant = $1 AND key = $2",
                    [.text(owner.tenant), .key(key), .text(state.rawValue), .int(position)]
                )
            }
        case .touch(let owner, let key, let time):
            guard try self.isThere(owner) else { return }
            try self.db.execute(
                "UPDATE retired_tokens SET reported_at = $3 WHERE tenant = $1 AND key = $2",
                [.text(owner.tenant), .key(key), .time(time)]
            )
        case .remove(let owner, let key):
            guard try self.isThere(owner) else { return }
            try self.db.execute(
                "DELETE FROM retired_tokens WHERE tenant = $1 AND key = $2",
                [.text(owner.tenant), .key(key)]
            )
        case .keepGuard(let owner, let purgeGuard):
            guard try self.isThere(owner) else { return }
            try self.save(purgeGuard, of: owner)
        }
    }

    /// Stores the positions that were given away.
    func finish() throws {
        for case (let owner, let position?) in self.positions {
            try self.db.execute(
                "UPDATE retired_token_books SET last_position = $2 WHERE tenant = $1 AND last_position < $2",
                [.text(owner.tenant), .int(position)]
            )
        }
    }

    /// Whether a tenant is there, in this very life; makes sure that it has a book.
    private mutating func isThere(_ owner: RetiredTokenOwner) throws -> Bool {
        if let position = self.positions[owner] { return position != nil }
        guard try self.db.hasTenant(owner.tenant, createdAt: owner.createdAt) else {
            self.positions.updateValue(nil, forKey: owner)
            return false
        }
        try self.db.execute(
            """
            INSERT INTO retired_token_books
                (tenant, last_position, sent, unregistered, aged_at, surplus, jump_since, jump_sent, jump_unregistered)
            VALUES ($1, 0, 0, 0, $2, 0, NULL, 0, 0)
            ON CONFLICT (tenant) DO NOTHING
            """,
            [.text(owner.tenant), .time(owner.createdAt)]
        )
        let position = try self.db.first(
            "SELECT last_position FROM retired_token_books WHERE tenant = $1",
            [.text(owner.tenant)]
        ) { try $0.int(0) }
        self.positions.updateValue(position ?? 0, forKey: owner)
        return true
    }

    /// The position after all others.
    private mutating func nextPosition(of owner: RetiredTokenOwner) -> Int {
        let next = ((self.positions[owner] ?? nil) ?? 0) + 1
        self.positions.updateValue(next, forKey: owner)
        return next
    }

    private mutating func put(_ row: RetiredTokenRow, of owner: RetiredTokenOwner, keepsSince: Bool) throws {
        let position = row.state.isFed ? self.nextPosition(of: owner) : nil
        try self.db.execute(
            """
            INSERT INTO retired_tokens (tenant, key, kind, state, since, reported_at, replacement, sealed, position)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (tenant, key) DO UPDATE SET
                kind = excluded.kind, state = excluded.state,
                since = CASE WHEN CAST($10 AS BIGINT) = 1 THEN retired_tokens.since ELSE excluded.since END,
                reported_at = excluded.reported_at, replacement = excluded.replacement, sealed = excluded.sealed,
                position = excluded.position
            """,
            [
                .text(owner.tenant), .key(row.key), .text(row.kind.rawValue), .text(row.state.rawValue),
                .time(row.since), .time(row.reportedAt), .int(Int(row.replacement)), .bytes(row.sealed),
                .int(position), .bool(keepsSince),
            ]
        )
    }

    private func save(_ purgeGuard: PurgeGuard, of owner: RetiredTokenOwner) throws {
        var since: Timestamp?
        var tally = PurgeGuard.Tally()
        if case .jump(let start, let jump) = purgeGuard.phase { (since, tally) = (start, jump) }
        try self.db.execute(
            """
            UPDATE retired_token_books SET
                sent = $2, unregistered = $3, aged_at = $4, surplus = $5,
                jump_since = $6, jump_sent = $7, jump_unregistered = $8
            WHERE tenant = $1
            """,
            [
                .text(owner.tenant), .real(purgeGuard.history.sent), .real(purgeGuard.history.unregistered),
                .time(purgeGuard.agedAt), .int(purgeGuard.surplus), .time(since), .real(tally.sent),
                .real(tally.unregistered),
            ]
        )
    }
}

/// Drops entries within a transaction.
private struct RetiredTokenTrim {
    /// The most entries that one round drops, so that other writes need not wait long.
    private static let maxDropped = 20_000

    let db: any SQLConnection

    /// Drops what is too old, then the oldest of the tenant that has most; the rest goes with the next round.
    func trim(before cutoff: Timestamp, keeping maxEntries: Int) throws -> [RetiredTokenEntry] {
        var dropped = try self.drop(
            "WHERE reported_at < $1 ORDER BY reported_at LIMIT $2",
            [.time(cutoff), .int(Self.maxDropped)]
        )
        while dropped.count < Self.maxDropped, let excess = try self.excess(over: maxEntries) {
            dropped += try self.drop(
                "WHERE tenant = $1 ORDER BY reported_at, key LIMIT $2",
                [.text(excess.tenant), .int(min(excess.count, Self.maxDropped - dropped.count))]
            )
        }
        return dropped
    }

    /// The tenant that has to give up entries, and how many, if there are too many.
    ///
    /// It gives up no more than it has above the next largest, and at least a hundredth of what it has, so that tenants
    /// of about the same size share the loss in few steps.
    private func excess(over maxEntries: Int) throws -> (tenant: String, count: Int)? {
        let total = try self.db.first("SELECT count(*) FROM retired_tokens") { try $0.int(0) } ?? 0
        guard total > maxEntries else { return nil }
        let sizes = try self.db.rows(
            "SELECT tenant, count(*) AS entries FROM retired_tokens GROUP BY tenant ORDER BY entries DESC LIMIT 2"
        ) { (tenant: try $0.text(0), count: try $0.int(1)) }
        guard let largest = sizes.first else { return nil }
        let lead = largest.count - (sizes.count > 1 ? sizes[1].count : 0)
        return (largest.tenant, min(total - maxEntries, max(lead, largest.count / 100, 1)))
    }

    private func drop(_ condition: String, _ values: [SQLValue]) throws -> [RetiredTokenEntry] {
        let entries = try self.db.rows(
            "SELECT \(SQLRetiredTokenStore.entryColumns) FROM retired_tokens \(condition)",
            values,
            SQLRetiredTokenStore.entry
        )
        try self.db.executeMany(
            "DELETE FROM retired_tokens WHERE tenant = $1 AND key = $2",
            entries.map { [.text($0.tenant), .key($0.key)] }
        )
        return entries
    }
}

extension SQLValue {
    /// 64 bits of a pseudonym as a signed number.
    fileprivate static func key(_ key: UInt64) -> SQLValue { .integer(Int64(bitPattern: key)) }
}
