package import GatewayCore

/// The list of retired tokens, and each tenant's spike detector.
package struct SQLRetiredTokenStore: RetiredTokenStore {
    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func load() async throws(GatewayError) -> RetiredTokenContents {
        try await self.database.read(scope: .gateway) { db in
            let sql = "SELECT \(Self.entryColumns) FROM retired_tokens ORDER BY reported_at, tenant, key"
            return (entries: try db.rows(sql, [], Self.entry), detectors: try Self.detectors(db))
        }
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        // Before the transaction, for which others may wait; only what is put has something to be sealed.
        var sealed: [[UInt8]] = []
        for case .put(let owner, let key, let token, _, _) in changes { sealed.append(try owner.seal(token, at: key)) }
        let contents = sealed
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            var writer = RetiredTokenWriter(db: db, sealed: contents)
            for change in changes { try writer.apply(change) }
            try writer.finish()
        }
    }

    package func feed(
        of owner: RetiredTokenOwner,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        try await self.database.read(scope: .tenant(owner.tenant.text)) { db in
            let found = try db.rows(
                """
                SELECT position, key, kind, state, since, sealed FROM retired_tokens
                WHERE tenant = $1 AND position > $2 ORDER BY position LIMIT $3
                """,
                [.text(owner.tenant), .int(position), .int(limit + 1)]
            ) { (position: try $0.int(0), token: try Self.token($0, of: owner)) }
            let shown = found.prefix(limit)
            let tokens = shown.compactMap(\.token)
            return RetiredTokenFeed(
                tokens: tokens,
                position: shown.last?.position ?? position,
                hasMore: found.count > limit,
                unreadable: shown.count - tokens.count
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

    fileprivate static let entryColumns = "tenant, key, state, reported_at, replacement"

    fileprivate static func entry(_ row: SQLRow) throws -> RetiredTokenEntry {
        guard let replacement = UInt16(exactly: try row.int64(4)) else { throw row.damaged(4) }
        return RetiredTokenEntry(
            tenant: try row.tenant(0),
            key: UInt64(bitPattern: try row.int64(1)),
            state: try row.parsed(2) { RetiredToken.State(rawValue: $0) },
            reportedAt: try row.time(3),
            replacement: replacement
        )
    }

    /// A token of the feed; `nil` where it does not open.
    private static func token(_ row: SQLRow, of owner: RetiredTokenOwner) throws -> RetiredToken? {
        let kind = try row.parsed(2) { RetiredToken.Kind(rawValue: $0) }
        let state = try row.parsed(3) { RetiredToken.State(rawValue: $0) }
        let since = try row.time(4)
        guard let (text, replacement) = owner.open(try row.bytes(5), at: UInt64(bitPattern: try row.int64(1))) else {
            return nil
        }
        return RetiredToken(kind: kind, text: text, state: state, since: since, replacement: replacement)
    }

    private static func detectors(_ db: any SQLConnection) throws -> [TenantID: SpikeDetector] {
        let detectors = try db.rows(
            """
            SELECT tenant, sent, unregistered, aged_at, surplus, spike_since, spike_sent, spike_unregistered
            FROM retired_token_lists
            """
        ) { row in
            var phase = SpikeDetector.Phase.steady
            if let since = try row.optionalTime(5) {
                phase = .spike(since: since, SpikeDetector.Tally(sent: try row.real(6), unregistered: try row.real(7)))
            }
            let detector = SpikeDetector(
                phase: phase,
                history: SpikeDetector.Tally(sent: try row.real(1), unregistered: try row.real(2)),
                agedAt: try row.time(3),
                surplus: try row.int(4)
            )
            return (try row.tenant(0), detector)
        }
        return Dictionary(uniqueKeysWithValues: detectors)
    }
}

private struct RetiredTokenWriter {
    /// The last positions given away, of the tenants that the transaction has met; `nil` for one that is gone.
    private var positions: [RetiredTokenOwner: Int?] = [:]
    private let db: any SQLConnection
    /// The sealed texts of the tokens that are put, in their order.
    private var sealed: IndexingIterator<[[UInt8]]>

    init(db: any SQLConnection, sealed: [[UInt8]]) {
        self.db = db
        self.sealed = sealed.makeIterator()
    }

    mutating func apply(_ change: RetiredTokenChange) throws {
        switch change {
        case .put(let owner, let key, let token, let replacement, let keepsSince):
            let sealed = self.sealed.next() ?? []
            guard try self.isThere(owner) else { return }
            let position = token.state.isFed ? self.nextPosition(of: owner) : nil
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
                    .text(owner.tenant), .key(key), .text(token.kind.rawValue), .text(token.state.rawValue),
                    .time(token.since), .time(token.since), .int(Int(replacement)), .bytes(sealed),
                    .int(position), .bool(keepsSince),
                ]
            )
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
        case .save(let owner, let detector):
            guard try self.isThere(owner) else { return }
            try self.save(detector, of: owner)
        }
    }

    func finish() throws {
        for case (let owner, let position?) in self.positions {
            try self.db.execute(
                "UPDATE retired_token_lists SET last_position = $2 WHERE tenant = $1 AND last_position < $2",
                [.text(owner.tenant), .int(position)]
            )
        }
    }

    /// Whether a tenant is there, and not another one of its name; makes sure that it has a list.
    private mutating func isThere(_ owner: RetiredTokenOwner) throws -> Bool {
        if let position = self.positions[owner] { return position != nil }
        guard try self.db.hasTenant(owner.tenant, createdAt: owner.createdAt) else {
            self.positions.updateValue(nil, forKey: owner)
            return false
        }
        try self.db.execute(
            """
            INSERT INTO retired_token_lists (
                tenant, last_position, sent, unregistered, aged_at, surplus, spike_since, spike_sent,
                spike_unregistered
            )
            VALUES ($1, 0, 0, 0, $2, 0, NULL, 0, 0)
            ON CONFLICT (tenant) DO NOTHING
            """,
            [.text(owner.tenant), .time(owner.createdAt)]
        )
        let position = try self.db.first(
            "SELECT last_position FROM retired_token_lists WHERE tenant = $1",
            [.text(owner.tenant)]
        ) { try $0.int(0) }
        self.positions.updateValue(position ?? 0, forKey: owner)
        return true
    }

    private mutating func nextPosition(of owner: RetiredTokenOwner) -> Int {
        let next = ((self.positions[owner] ?? nil) ?? 0) + 1
        self.positions.updateValue(next, forKey: owner)
        return next
    }

    private func save(_ detector: SpikeDetector, of owner: RetiredTokenOwner) throws {
        var since: Timestamp?
        var tally = SpikeDetector.Tally()
        if case .spike(let start, let spike) = detector.phase { (since, tally) = (start, spike) }
        try self.db.execute(
            """
            UPDATE retired_token_lists SET
                sent = $2, unregistered = $3, aged_at = $4, surplus = $5,
                spike_since = $6, spike_sent = $7, spike_unregistered = $8
            WHERE tenant = $1
            """,
            [
                .text(owner.tenant), .double(detector.history.sent), .double(detector.history.unregistered),
                .time(detector.agedAt), .int(detector.surplus), .time(since), .double(tally.sent),
                .double(tally.unregistered),
            ]
        )
    }
}

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
        let sql = "SELECT tenant, count(*) AS entries FROM retired_tokens GROUP BY tenant ORDER BY entries DESC LIMIT 2"
        let sizes = try self.db.rows(sql) { (tenant: try $0.text(0), count: try $0.int(1)) }
        guard let largest = sizes.first else { return nil }
        let lead = largest.count - (sizes.count > 1 ? sizes[1].count : 0)
        return (largest.tenant, min(total - maxEntries, max(lead, largest.count / 100, 1)))
    }

    private func drop(_ condition: String, _ values: [SQLValue]) throws -> [RetiredTokenEntry] {
        let sql = "SELECT \(SQLRetiredTokenStore.entryColumns) FROM retired_tokens \(condition)"
        let entries = try self.db.rows(sql, values, SQLRetiredTokenStore.entry)
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
