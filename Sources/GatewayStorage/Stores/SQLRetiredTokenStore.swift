package import GatewayCore

/// The list of retired tokens, which all replicas of a store write.
///
/// A token is fed by giving it a position, in a transaction that first locks the row of `retired_token_feed`. These
/// transactions run one after the other, so that no position is committed after a higher one (decision 0055).
package struct SQLRetiredTokenStore: RetiredTokenStore {
    /// A token that FCM reported, and that is neither fed nor suspected.
    fileprivate static let isPending = "position IS NULL AND state IN ('unregistered', 'replaced')"
    /// The most tokens that one transaction feeds or suspects, so that others need not wait long.
    private static let tokensPerTransaction = 1_000
    /// Each read of news overlaps the last one by this time, because a transaction commits after its statements ran. It is
    /// far longer than a transaction of a gateway usually takes.
    private static let newsOverlap = Duration.seconds(60)

    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func load() async throws(GatewayError) -> (entries: [RetiredToken.Entry], readAt: Timestamp) {
        try await StoreEpoch.confirm(in: self.database)
        return try await self.database.read(.scan, scope: .gateway) { db in
            let readAt = try Self.time(db)
            return (try Self.entries("state <> 'removed'", [], db), readAt)
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
            return try Self.removeRows([Int64(bitPattern: key)], of: owner.tenant.text, db) > 0
        }
    }

    package func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenFeed.News {
        // After a fail-over the server may have lost positions that readers have seen.
        try await StoreEpoch.confirm(in: self.database)
        let since = moment.advanced(by: .zero - Self.newsOverlap)
        let (spiking, isDue) = try await self.database.read(scope: .gateway) { db in
            let bucket = try Self.bucket(db)
            let isDue = try db.exists(
                "SELECT 1 FROM retired_tokens WHERE \(Self.isPending) AND due <= $1 LIMIT 1",
                [.int(bucket)]
            )
            return (try Self.spiking(in: bucket, db), isDue)
        }
        for tenant in spiking {
            while try await self.suspectPending(of: tenant) {}
        }
        if isDue {
            while try await self.feedDue() {}
        }
        return try await self.database.read(.scan, scope: .gateway) { db in
            let readAt = try Self.time(db)
            let changed = try Self.entries("changed_at >= $1", [.time(since)], db)
            return RetiredTokenFeed.News(spiking: spiking, changed: changed, readAt: readAt)
        }
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

    /// The tenants for which the last hour is a spike.
    private static func spiking(in bucket: Int, _ db: any SQLConnection) throws -> Set<TenantID> {
        let hours = try db.rows(
            """
            SELECT tenant, CAST(sum(judged) AS BIGINT), CAST(sum(unregistered) AS BIGINT) FROM retired_token_counts
            WHERE bucket > $1 AND bucket <= $2 GROUP BY tenant HAVING sum(unregistered) > 0
            """,
            [.int(bucket - RetiredTokenCounts.bucketsPerHour), .int(bucket)]
        ) { row in (tenant: try row.tenant(0), tally: try Self.tally(row)) }
        return Set(hours.filter(\.tally.isSpike).map(\.tenant))
    }

    /// Suspects a tenant's pending tokens. Returns true if there may be more.
    private func suspectPending(of tenant: TenantID) async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            let keys = try db.rows(
                """
                SELECT key FROM retired_tokens WHERE tenant = $1 AND \(Self.isPending) AND state = 'unregistered'
                ORDER BY due, key LIMIT $2
                """,
                [.text(tenant), .int(Self.tokensPerTransaction)]
            ) { try $0.int64(0) }
            try db.executeMany(
                """
                UPDATE retired_tokens SET state = 'suspected', changed_at = gateway_time()
                WHERE tenant = $1 AND key = $2 AND position IS NULL AND state = 'unregistered'
                """,
                // In the order in which reports are written, so that two transactions don't deadlock.
                keys.sorted().map { [.text(tenant), .integer($0)] }
            )
            return keys.count == Self.tokensPerTransaction
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

    /// Removes a tenant's tokens, and keeps their rows without their texts. Returns how many of them were on the list.
    ///
    /// With a moment, those that were reported later stay.
    @discardableResult
    fileprivate static func removeRows(
        _ keys: [Int64],
        of tenant: String,
        reportedBefore moment: Timestamp = Timestamp(microseconds: .max),
        _ db: any SQLConnection
    ) throws -> Int {
        try db.executeMany(
            """
            UPDATE retired_tokens
            SET state = 'removed', position = NULL, replacement = 0, sealed = $3, changed_at = gateway_time()
            WHERE tenant = $1 AND key = $2 AND state <> 'removed' AND reported_at < $4
            """,
            // Sorted as above.
            keys.sorted().map { [.string(tenant), .integer($0), .bytes([]), .time(moment)] }
        )
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

    private static func entries(
        _ condition: String,
        _ values: [SQLValue],
        _ db: any SQLConnection
    ) throws -> [RetiredToken.Entry] {
        let sql = "SELECT tenant, key, state, reported_at, replacement FROM retired_tokens WHERE \(condition)"
        return try db.rows(sql, values) { row in
            guard let replacement = UInt16(exactly: try row.int64(4)) else { throw row.damaged(4) }
            let isRemoved = try row.text(2) == "removed"
            return RetiredToken.Entry(
                tenant: try row.tenant(0),
                key: UInt64(bitPattern: try row.int64(1)),
                state: isRemoved ? nil : try row.parsed(2) { RetiredToken.State(rawValue: $0) },
                reportedAt: try row.time(3),
                replacement: replacement
            )
        }
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
                WHERE tenant = $1 AND due BETWEEN $2 AND $2 AND state = $3 AND \(SQLRetiredTokenStore.isPending)
                ORDER BY due, key LIMIT $4
                """,
                [.string(self.tenant), .int(self.due), .string(self.state.rawValue), .int(count)]
            ) { try $0.int64(0) }
            let isSuspect = try self.state == .unregistered && self.counts(db).isSuspect(dueIn: self.due)
            let state = isSuspect ? RetiredToken.State.suspected : self.state
            try db.executeMany(
                // A token that another transaction changed meanwhile is left as it is.
                """
                UPDATE retired_tokens SET position = $4, state = $5, changed_at = gateway_time()
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
                try SQLRetiredTokenStore.removeRows([Int64(bitPattern: key)], of: owner.tenant.text, self.db)
            case .count(_, let tally):
                self.tallies[owner.tenant, default: RetiredTokenCounts.Tally()] += tally
            }
        }

        /// Lists a token, unless it is listed with the same news: then only the time of the report is new.
        ///
        /// A suspected token that is reported dead again keeps the time of its first report. A report that is suspected
        /// itself lists a token that is not on the list, and changes nothing else.
        private func put(
            _ token: RetiredToken,
            at key: UInt64,
            of tenant: TenantID,
            _ sealed: [UInt8],
            _ replacement: UInt16
        ) throws {
            let isDue = token.state == .replaced
            let isSame = "retired_tokens.state = excluded.state AND retired_tokens.replacement = excluded.replacement"
            let isConfirmed = "retired_tokens.state = 'suspected' AND excluded.state = 'unregistered'"
            let condition = token.state == .suspected ? "WHERE retired_tokens.state = 'removed'" : ""
            let changed = try self.db.execute(
                """
                INSERT INTO retired_tokens
                    (tenant, key, kind, state, since, reported_at, replacement, sealed, due, position, changed_at)
                VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, NULL, gateway_time())
                ON CONFLICT (tenant, key) DO UPDATE SET
                    since = CASE WHEN \(isSame) OR \(isConfirmed) THEN retired_tokens.since ELSE excluded.since END,
                    due = CASE WHEN \(isSame) THEN retired_tokens.due ELSE excluded.due END,
                    position = CASE WHEN \(isSame) THEN retired_tokens.position END,
                    kind = excluded.kind, state = excluded.state, reported_at = excluded.reported_at,
                    replacement = excluded.replacement, sealed = excluded.sealed, changed_at = excluded.changed_at
                \(condition)
                """,
                [
                    .text(tenant), .key(key), .text(token.kind.rawValue), .text(token.state.rawValue),
                    .time(token.since),
                    .int(Int(replacement)), .bytes(sealed),
                    .int(isDue ? self.bucket : self.bucket + RetiredTokenCounts.bucketsUntilDue),
                ]
            )
            if changed == 0 {
                // The replica that reported it takes the row over again.
                try self.db.execute(
                    "UPDATE retired_tokens SET changed_at = gateway_time() WHERE tenant = $1 AND key = $2",
                    [.text(tenant), .key(key)]
                )
            }
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
    /// Drops tokens that are too old, then the oldest of the tenants that have most. Only the leader does: each of
    /// several replicas would drop the whole excess.
    package func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError) {
        guard try await self.database.isLeader() else { return }
        var sizes = try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows(
                """
                SELECT tenant, count(*), min(reported_at) FROM retired_tokens WHERE state <> 'removed' GROUP BY tenant
                """
            ) { (tenant: try $0.text(0), count: try $0.int(1), oldest: try $0.time(2)) }
        }
        for index in sizes.indices where sizes[index].oldest < cutoff {
            sizes[index].count -= try await self.drop(of: sizes[index].tenant, reportedBefore: cutoff)
        }
        let share = Self.share(of: maxEntries, among: sizes.map(\.count))
        for size in sizes where size.count > share {
            _ = try await self.drop(of: size.tenant, atMost: size.count - share)
        }
        try await self.dropPast()
    }

    /// Returns the most entries that each tenant may keep, so that all keep no more than a total.
    ///
    /// Example: of a total of 1,000, tenants with 100, 500 and 800 entries may keep 450 each.
    static func share(of total: Int, among sizes: [Int]) -> Int {
        var rest = total
        for (index, size) in sizes.sorted().enumerated() {
            let share = rest / (sizes.count - index)
            if size > share { return share }
            rest -= size
        }
        return .max
    }

    /// Drops a tenant's oldest tokens, some with each transaction. Returns their number.
    private func drop(
        of tenant: String,
        atMost limit: Int = .max,
        reportedBefore moment: Timestamp = Timestamp(microseconds: .max)
    ) async throws(GatewayError) -> Int {
        var dropped = 0
        while dropped < limit {
            let chunk = min(limit - dropped, Self.tokensPerTransaction)
            let count = try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
                let keys = try db.rows(
                    """
                    SELECT key FROM retired_tokens WHERE tenant = $1 AND state <> 'removed' AND reported_at < $2
                    ORDER BY reported_at, key LIMIT $3
                    """,
                    [.string(tenant), .time(moment), .int(chunk)]
                ) { try $0.int64(0) }
                try Self.removeRows(keys, of: tenant, reportedBefore: moment, db)
                return keys.count
            }
            guard count > 0 else { break }
            dropped += count
        }
        return dropped
    }

    /// Drops counts by which no pending report is judged any more, and tokens that were removed a day ago.
    private func dropPast() async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            let bucket = try Self.bucket(db)
            let due = try db.first("SELECT min(due) FROM retired_tokens WHERE \(Self.isPending)") {
                $0.isNull(0) ? bucket : try $0.int(0)
            }
            let span = RetiredTokenCounts.bucketsUntilDue + RetiredTokenCounts.bucketsPerHour
            try db.execute(
                "DELETE FROM retired_token_counts WHERE bucket < $1",
                [.int(min(due ?? bucket, bucket) - span)]
            )
        }
        while try await self.deleteRemoved() {}
    }

    /// Deletes rows of tokens that were removed a day ago. Returns true if there may be more.
    private func deleteRemoved() async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            let keys = try db.rows(
                "SELECT tenant, key FROM retired_tokens WHERE state = 'removed' AND changed_at < $1 LIMIT $2",
                [.time(try Self.time(db).advanced(by: .seconds(-86_400))), .int(Self.tokensPerTransaction)]
            ) { row in [SQLValue.string(try row.text(0)), .integer(try row.int64(1))] }
            try db.executeMany("DELETE FROM retired_tokens WHERE tenant = $1 AND key = $2 AND state = 'removed'", keys)
            return keys.count == Self.tokensPerTransaction
        }
    }
}

extension SQLValue {
    /// 64 bits of a pseudonym as a signed integer.
    fileprivate static func key(_ key: UInt64) -> SQLValue { .integer(Int64(bitPattern: key)) }
}
