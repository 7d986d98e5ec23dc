package import GatewayCore

/// The list of retired tokens, which all replicas of a store write.
///
/// A token is fed by giving it a position, in a transaction that first locks the row of `retired_token_feed`. These
/// transactions run one after the other, so that no position is committed after a higher one (decision 0055).
package struct SQLRetiredTokenStore: RetiredTokenStore {
    /// A token that FCM reported, and that is neither fed nor suspected.
    fileprivate static let isPending = "position IS NULL AND state <> 'suspected'"
    /// The most tokens that one transaction feeds or suspects, so that others need not wait long.
    private static let tokensPerTransaction = 1_000
    /// Each read of news overlaps the last one by this time, because a transaction commits after its statements ran. No
    /// statement of a gateway takes as long.
    private static let newsOverlap = Duration.seconds(60)

    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func load() async throws(GatewayError) -> (entries: [RetiredToken.Entry], readAt: Timestamp) {
        try await StoreEpoch.confirm(in: self.database)
        return try await self.database.read(.scan, scope: .gateway) { db in
            let readAt = try Self.time(db)
            let sql = "SELECT tenant, key, state, reported_at, replacement FROM retired_tokens"
            return (try db.rows(sql, [], Self.entry), readAt)
        }
    }

    package func apply(_ changes: [RetiredToken.Change]) async throws(GatewayError) {
        // Sealing precedes the transaction, for which others may wait.
        var rows: [(change: RetiredToken.Change, sealed: [UInt8])] = []
        for change in changes {
            guard case .report(let owner, let key, let token, _) = change else {
                rows.append((change, []))
                continue
            }
            rows.append((change, try owner.seal(token, at: key)))
        }
        // One order, so that transactions of two replicas don't deadlock. The sort keeps the order of changes to one
        // token.
        func place(_ change: RetiredToken.Change) -> (String, Int64) {
            (change.owner.tenant.text, Int64(bitPattern: change.key))
        }
        rows.sort { place($0.change) < place($1.change) }
        let sorted = rows
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            var writer = Writer(db: db, bucket: try Self.bucket(db))
            for (change, sealed) in sorted { try writer.apply(change, sealed) }
            try writer.finish()
        }
    }

    package func remove(_ key: UInt64, of owner: RetiredToken.Owner) async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            guard try db.hasTenant(owner.tenant, createdAt: owner.createdAt) else { return false }
            return try Self.removeRows([[.text(owner.tenant), .key(key)]], db) > 0
        }
    }

    package func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenFeed.News {
        // After a fail-over the server may have lost positions that readers have seen.
        try await StoreEpoch.confirm(in: self.database)
        let since = moment.advanced(by: .zero - Self.newsOverlap)
        let (news, isDue) = try await self.database.read(scope: .gateway) { db in
            let bucket = try Self.bucket(db)
            let news = try Self.news(db, since: since, bucket)
            let isDue = try db.exists(
                "SELECT 1 FROM retired_tokens WHERE \(Self.isPending) AND due <= $1 LIMIT 1",
                [.int(bucket)]
            )
            return (news, isDue)
        }
        for tenant in news.spiking {
            while try await self.suspectPending(of: tenant) {}
        }
        if isDue {
            while try await self.feedDue() {}
        }
        return news
    }

    package func feed(
        of owner: RetiredToken.Owner,
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        try await self.database.read(scope: .tenant(owner.tenant.text)) { db in
            let epoch = try StoreEpoch.text(db)
            let start = cursor ?? RetiredTokenFeed.Cursor(epoch: epoch, position: 0)
            guard start.epoch == epoch else {
                throw GatewayError(
                    .invalid,
                    "cursor is from before the store was restored or copied; begin again without one"
                )
            }
            let found = try db.rows(
                """
                SELECT position, key, kind, state, since, sealed FROM retired_tokens
                WHERE tenant = $1 AND position IS NOT NULL AND position > $2 ORDER BY position LIMIT $3
                """,
                [.text(owner.tenant), .int(start.position), .int(limit + 1)]
            ) { row in (position: try row.int64(0), token: try Self.token(row, of: owner)) }
            let shown = found.prefix(limit)
            let tokens = shown.compactMap(\.token)
            return RetiredTokenFeed(
                tokens: tokens,
                cursor: RetiredTokenFeed.Cursor(epoch: epoch, position: shown.last?.position ?? start.position),
                hasMore: found.count > limit,
                unreadable: shown.count - tokens.count
            )
        }
    }

    // MARK: Settling

    private static func news(_ db: any SQLConnection, since: Timestamp, _ bucket: Int) throws -> RetiredTokenFeed.News {
        let readAt = try Self.time(db)
        let hours = try db.rows(
            """
            SELECT tenant, CAST(sum(judged) AS BIGINT), CAST(sum(unregistered) AS BIGINT) FROM retired_token_counts
            WHERE bucket > $1 AND bucket <= $2 GROUP BY tenant HAVING sum(unregistered) > 0
            """,
            [.int(bucket - RetiredTokenCounts.bucketsPerHour), .int(bucket)]
        ) { row in (tenant: try row.tenant(0), tally: try Self.tally(row)) }
        let removed = try db.rows(
            "SELECT tenant, key FROM retired_token_removals WHERE removed_at >= $1",
            [.time(since)]
        ) { row in (tenant: try row.tenant(0), key: UInt64(bitPattern: try row.int64(1))) }
        return RetiredTokenFeed.News(
            spiking: Set(hours.filter(\.tally.isSpike).map(\.tenant)),
            removed: Dictionary(grouping: removed, by: \.tenant).mapValues { $0.map(\.key) },
            readAt: readAt
        )
    }

    /// Suspects a tenant's pending tokens. Returns true if there may be more.
    private func suspectPending(of tenant: TenantID) async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            let changed = try db.execute(
                """
                UPDATE retired_tokens SET state = 'suspected'
                WHERE tenant = $1 AND position IS NULL AND state = 'unregistered' AND key IN (
                    SELECT key FROM retired_tokens
                    WHERE tenant = $1 AND \(Self.isPending) AND state = 'unregistered' ORDER BY due, key LIMIT $2
                )
                """,
                [.text(tenant), .int(Self.tokensPerTransaction)]
            )
            return changed == Self.tokensPerTransaction
        }
    }

    /// Feeds tokens that are due, or suspects them. Returns true if there may be more.
    private func feedDue() async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            // Other transactions that feed wait here until this one has ended.
            try db.execute(
                """
                INSERT INTO retired_token_feed (id, last_position) VALUES (1, $1)
                ON CONFLICT (id) DO UPDATE SET last_position = retired_token_feed.last_position + excluded.last_position
                """,
                [.int(Self.tokensPerTransaction)]
            )
            let end = try db.first("SELECT last_position FROM retired_token_feed") { try $0.int(0) } ?? 0
            let bucket = try Self.bucket(db)
            var position = end - Self.tokensPerTransaction
            while position < end, let reports = try DueReports.first(by: bucket, db) {
                position += try reports.settle(db, after: position, atMost: end - position)
            }
            return position == end
        }
    }

    /// Removes tokens and notes it for other replicas. Returns how many of them were there.
    @discardableResult
    fileprivate static func removeRows(_ keys: [[SQLValue]], _ db: any SQLConnection) throws -> Int {
        try db.executeMany(
            """
            INSERT INTO retired_token_removals (tenant, key, removed_at)
            SELECT tenant, key, gateway_time() FROM retired_tokens WHERE tenant = $1 AND key = $2
            ON CONFLICT (tenant, key) DO UPDATE SET removed_at = excluded.removed_at
            """,
            keys
        )
        return try db.executeMany("DELETE FROM retired_tokens WHERE tenant = $1 AND key = $2", keys)
    }

    private static func time(_ db: any SQLConnection) throws -> Timestamp {
        try db.first("SELECT gateway_time()") { try $0.time(0) } ?? Timestamp(microseconds: 0)
    }

    /// The number of the present bucket.
    fileprivate static func bucket(_ db: any SQLConnection) throws -> Int {
        try Self.time(db).seconds / Int(RetiredTokenCounts.bucketDuration / .seconds(1))
    }

    /// Reads the second and third column.
    fileprivate static func tally(_ row: SQLRow) throws -> RetiredTokenCounts.Tally {
        RetiredTokenCounts.Tally(judged: try row.int(1), unregistered: try row.int(2))
    }

    // MARK: Rows

    private static func entry(_ row: SQLRow) throws -> RetiredToken.Entry {
        guard let replacement = UInt16(exactly: try row.int64(4)) else { throw row.damaged(4) }
        return RetiredToken.Entry(
            tenant: try row.tenant(0),
            key: UInt64(bitPattern: try row.int64(1)),
            state: try row.parsed(2) { RetiredToken.State(rawValue: $0) },
            reportedAt: try row.time(3),
            replacement: replacement
        )
    }

    /// A token of the feed, `nil` if it does not open.
    private static func token(_ row: SQLRow, of owner: RetiredToken.Owner) throws -> RetiredToken? {
        let kind = try row.parsed(2) { RetiredToken.Kind(rawValue: $0) }
        let state = try row.parsed(3) { RetiredToken.State(rawValue: $0) }
        let since = try row.time(4)
        guard let (text, replacement) = owner.open(try row.bytes(5), at: UInt64(bitPattern: try row.int64(1))) else {
            return nil
        }
        return RetiredToken(kind: kind, text: text, state: state, since: since, replacement: replacement)
    }
}

extension SQLRetiredTokenStore {
    /// Reports of one kind about tokens of one tenant that are due in the same bucket.
    fileprivate struct DueReports {
        private let tenant: String
        private let due: Int
        private let state: RetiredToken.State

        /// Returns `nil` if nothing is due.
        static func first(by bucket: Int, _ db: any SQLConnection) throws -> DueReports? {
            try db.first(
                """
                SELECT tenant, due, state FROM retired_tokens WHERE \(SQLRetiredTokenStore.isPending) AND due <= $1
                ORDER BY tenant, due, key LIMIT 1
                """,
                [.int(bucket)]
            ) { row in
                let state = try row.parsed(2) { RetiredToken.State(rawValue: $0) }
                return DueReports(tenant: try row.text(0), due: try row.int(1), state: state)
            }
        }

        /// Feeds the tokens at the positions after one, or suspects them. Returns how many positions are used up.
        func settle(_ db: any SQLConnection, after position: Int, atMost count: Int) throws -> Int {
            let keys = try db.rows(
                """
                SELECT key FROM retired_tokens
                WHERE tenant = $1 AND due = $2 AND state = $3 AND \(SQLRetiredTokenStore.isPending) ORDER BY key LIMIT $4
                """,
                [.string(self.tenant), .int(self.due), .string(self.state.rawValue), .int(count)]
            ) { try $0.int64(0) }
            let isSuspect = try self.state == .unregistered && self.counts(db).isSuspect(dueIn: self.due)
            let state = isSuspect ? RetiredToken.State.suspected : self.state
            try db.executeMany(
                // A token that another transaction changed meanwhile is left as it is.
                """
                UPDATE retired_tokens SET position = $4, state = $5
                WHERE tenant = $1 AND key = $2 AND due = $3 AND state = $6 AND position IS NULL
                """,
                keys.enumerated()
                    .map { index, key in
                        [
                            .string(self.tenant), .integer(key), .int(self.due),
                            isSuspect ? .null : .int(position + index + 1), .string(state.rawValue),
                            .string(self.state.rawValue),
                        ]
                    }
            )
            return keys.count
        }

        private func counts(_ db: any SQLConnection) throws -> RetiredTokenCounts {
            let start = self.due - RetiredTokenCounts.bucketsUntilDue - RetiredTokenCounts.bucketsPerHour
            let tallies = try db.rows(
                """
                SELECT bucket, judged, unregistered FROM retired_token_counts
                WHERE tenant = $1 AND bucket > $2 AND bucket < $3
                """,
                [.string(self.tenant), .int(start), .int(self.due)]
            ) { row in (try row.int(0), try SQLRetiredTokenStore.tally(row)) }
            return RetiredTokenCounts(Dictionary(uniqueKeysWithValues: tallies))
        }
    }

    fileprivate struct Writer {
        private let db: any SQLConnection
        /// The present bucket.
        private let bucket: Int
        /// True for tenants that are there, of those that the transaction has met.
        private var tenants: [RetiredToken.Owner: Bool] = [:]
        private var tallies: [TenantID: RetiredTokenCounts.Tally] = [:]

        init(db: any SQLConnection, bucket: Int) {
            self.db = db
            self.bucket = bucket
        }

        mutating func apply(_ change: RetiredToken.Change, _ sealed: [UInt8]) throws {
            let owner = change.owner
            let isThere = try self.tenants[owner] ?? self.db.hasTenant(owner.tenant, createdAt: owner.createdAt)
            self.tenants[owner] = isThere
            guard isThere else { return }
            switch change {
            case .report(_, let key, let token, let replacement):
                try self.put(token, at: key, of: owner.tenant, sealed, replacement)
            case .remove(_, let key):
                try SQLRetiredTokenStore.removeRows([[.text(owner.tenant), .key(key)]], self.db)
            case .count(_, let tally):
                self.tallies[owner.tenant, default: RetiredTokenCounts.Tally()] += tally
            }
        }

        /// Lists a token, unless it is listed with the same news: then only the time of the report is new.
        ///
        /// A suspected token that is reported dead again keeps the time of its first report.
        private func put(
            _ token: RetiredToken,
            at key: UInt64,
            of tenant: TenantID,
            _ sealed: [UInt8],
            _ replacement: UInt16
        ) throws {
            let isDead = token.state == .unregistered
            let isSame = "retired_tokens.state = excluded.state AND retired_tokens.replacement = excluded.replacement"
            let isConfirmed = "retired_tokens.state = 'suspected' AND excluded.state = 'unregistered'"
            try self.db.execute(
                """
                INSERT INTO retired_tokens
                    (tenant, key, kind, state, since, reported_at, replacement, sealed, due, position)
                VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, NULL)
                ON CONFLICT (tenant, key) DO UPDATE SET
                    since = CASE WHEN \(isSame) OR \(isConfirmed) THEN retired_tokens.since ELSE excluded.since END,
                    due = CASE WHEN \(isSame) THEN retired_tokens.due ELSE excluded.due END,
                    position = CASE WHEN \(isSame) THEN retired_tokens.position END,
                    kind = excluded.kind, state = excluded.state, reported_at = excluded.reported_at,
                    replacement = excluded.replacement, sealed = excluded.sealed
                """,
                [
                    .text(tenant), .key(key), .text(token.kind.rawValue), .text(token.state.rawValue),
                    .time(token.since),
                    .int(Int(replacement)), .bytes(sealed),
                    .int(isDead ? self.bucket + RetiredTokenCounts.bucketsUntilDue : self.bucket),
                ]
            )
        }

        /// Adds what was counted to the present bucket.
        func finish() throws {
            let rows = self.tallies.sorted { $0.key.text < $1.key.text }
                .map { tenant, tally -> [SQLValue] in
                    [.text(tenant), .int(self.bucket), .int(tally.judged), .int(tally.unregistered)]
                }
            guard !rows.isEmpty else { return }
            try self.db.executeMany(
                """
                INSERT INTO retired_token_counts (tenant, bucket, judged, unregistered) VALUES ($1, $2, $3, $4)
                ON CONFLICT (tenant, bucket) DO UPDATE SET
                    judged = retired_token_counts.judged + excluded.judged,
                    unregistered = retired_token_counts.unregistered + excluded.unregistered
                """,
                rows
            )
        }
    }
}

// MARK: Trimming

extension SQLRetiredTokenStore {
    /// The most entries that one round drops, so that other writes don't wait long.
    private static let maxDropped = 20_000

    /// Drops tokens that are too old, then the oldest of the tenant that has most. The next round drops the rest.
    package func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            var dropped = try Self.drop(
                "WHERE reported_at < $1 ORDER BY reported_at LIMIT $2",
                [.time(cutoff), .int(Self.maxDropped)],
                db
            )
            while dropped < Self.maxDropped, let excess = try Self.excess(over: maxEntries, db) {
                dropped += try Self.drop(
                    "WHERE tenant = $1 ORDER BY reported_at, key LIMIT $2",
                    [.text(excess.tenant), .int(min(excess.count, Self.maxDropped - dropped))],
                    db
                )
            }
            try Self.dropPast(of: try Self.bucket(db), db)
        }
    }

    /// Drops counts by which no pending report is judged any more, and removals that are a day old.
    private static func dropPast(of bucket: Int, _ db: any SQLConnection) throws {
        let due = try db.first("SELECT min(due) FROM retired_tokens WHERE \(Self.isPending)") {
            $0.isNull(0) ? bucket : try $0.int(0)
        }
        let span = RetiredTokenCounts.bucketsUntilDue + RetiredTokenCounts.bucketsPerHour
        try db.execute(
            "DELETE FROM retired_token_counts WHERE bucket < $1",
            [.int(min(due ?? bucket, bucket) - span)]
        )
        try db.execute(
            "DELETE FROM retired_token_removals WHERE removed_at < gateway_time() - $1",
            [.microseconds(.seconds(86_400))]
        )
    }

    /// The tenant that must give up entries and their number, if there are too many.
    ///
    /// It gives up at most its lead over the next largest, or a hundredth of its own if that is more. So tenants of
    /// similar size share the loss in few steps. Example: with 900 and 700 entries and 300 too many, the first gives up
    /// 200. Then both have 700 and take turns with 7 each.
    private static func excess(
        over maxEntries: Int,
        _ db: any SQLConnection
    ) throws -> (tenant: String, count: Int)? {
        let total = try db.first("SELECT count(*) FROM retired_tokens") { try $0.int(0) } ?? 0
        guard total > maxEntries else { return nil }
        let sql = "SELECT tenant, count(*) AS entries FROM retired_tokens GROUP BY tenant ORDER BY entries DESC LIMIT 2"
        let sizes = try db.rows(sql) { (tenant: try $0.text(0), count: try $0.int(1)) }
        guard let largest = sizes.first else { return nil }
        let lead = largest.count - (sizes.count > 1 ? sizes[1].count : 0)
        return (largest.tenant, min(total - maxEntries, max(lead, largest.count / 100, 1)))
    }

    /// Returns how many tokens were dropped.
    private static func drop(_ condition: String, _ values: [SQLValue], _ db: any SQLConnection) throws -> Int {
        let keys = try db.rows("SELECT tenant, key FROM retired_tokens \(condition)", values) { row in
            [SQLValue.text(try row.text(0)), .integer(try row.int64(1))]
        }
        try Self.removeRows(keys, db)
        return keys.count
    }
}

extension SQLValue {
    /// 64 bits of a pseudonym as a signed integer.
    fileprivate static func key(_ key: UInt64) -> SQLValue { .integer(Int64(bitPattern: key)) }
}
