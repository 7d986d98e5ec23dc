package import GatewayCore

/// The list of retired tokens, and each tenant's spike detector.
///
/// Where several replicas share it, what they change is noted in `retired_token_changes`, and what they count in
/// `retired_token_counts`.
package struct SQLRetiredTokenStore: RetiredTokenStore {
    /// For how long changes are there for replicas that have not asked for them; twice as long as those rely on.
    private static let changesKept = Duration.seconds(3_600)

    private let database: any SQLDatabase
    /// `nil` for a process that has the database to itself, which notes nothing for others.
    private let replica: String?
    private let changesPerPage: Int

    package init(database: any SQLDatabase, replica: ReplicaID? = nil, changesPerPage: Int = 20_000) {
        (self.database, self.replica, self.changesPerPage) = (database, replica?.text, changesPerPage)
    }

    package func load() async throws(GatewayError) -> RetiredTokenContents {
        try await StoreEpoch.confirm(in: self.database)
        let replica = self.replica
        return try await self.database.read(.scan, scope: .gateway) { db in
            let sql = "SELECT \(Self.entryColumns) FROM retired_tokens ORDER BY reported_at, tenant, key"
            let last = try db.first(
                """
                SELECT changed_in, number FROM retired_token_changes WHERE changed_in <= gateway_change_horizon()
                ORDER BY changed_in DESC, number DESC LIMIT 1
                """
            ) { RetiredTokenBookmark.Place(transaction: try $0.int64(0), number: try $0.int64(1)) }
            return RetiredTokenContents(
                entries: try db.rows(sql, [], Self.entry),
                detectors: try Self.detectors(db, since: .min),
                counts: try Self.counts(db, since: .min, but: replica),
                bookmark: RetiredTokenBookmark(
                    epoch: try StoreEpoch.current(db).epoch,
                    place: last ?? RetiredTokenBookmark.Place(transaction: 0, number: 0),
                    horizon: try Self.horizon(db)
                )
            )
        }
    }

    package func changes(since bookmark: RetiredTokenBookmark) async throws(GatewayError) -> RetiredTokenNews? {
        let (replica, limit) = (self.replica, self.changesPerPage)
        let start = bookmark.pageEnd ?? bookmark.place
        return try await self.database.read(scope: .gateway) { db in
            let (epoch, isConfirmed) = try StoreEpoch.current(db)
            guard isConfirmed, epoch == bookmark.epoch else { return nil }
            let horizon = try Self.horizon(db)
            let changes = try db.rows(
                """
                SELECT c.tenant, c.key, t.state, t.reported_at, t.replacement, c.changed_in, c.number
                FROM retired_token_changes c LEFT JOIN retired_tokens t ON t.tenant = c.tenant AND t.key = c.key
                WHERE (c.changed_in, c.number) > ($1, $2) ORDER BY c.changed_in, c.number LIMIT $3
                """,
                [.int(start.transaction), .int(start.number), .int(limit)]
            ) { row in
                RetiredTokenNews.Change(
                    place: .init(transaction: try row.int64(5), number: try row.int64(6)),
                    tenant: try row.tenant(0),
                    key: UInt64(bitPattern: try row.int64(1)),
                    entry: row.isNull(2) ? nil : try Self.entry(row)
                )
            }
            // What comes later with a number from before the horizon has ended by now, and is in here; but what lies
            // before this page's start may still have late company.
            let settled = start == bookmark.place ? changes.last { $0.place.transaction <= horizon } : nil
            return RetiredTokenNews(
                changes: changes,
                detectors: try Self.detectors(db, since: bookmark.horizon),
                counts: try Self.counts(db, since: bookmark.horizon, but: replica),
                bookmark: RetiredTokenBookmark(
                    epoch: epoch,
                    place: settled?.place ?? bookmark.place,
                    horizon: horizon,
                    pageEnd: changes.count == limit ? changes.last?.place : nil
                )
            )
        }
    }

    private static func horizon(_ db: any SQLConnection) throws -> Int64 {
        try db.first("SELECT gateway_change_horizon()") { try $0.int64(0) } ?? 0
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        // Before the transaction, for which others may wait; only what is put has something to be sealed.
        var sealed: [[UInt8]] = []
        for case .put(let owner, let key, let token, _, _) in changes { sealed.append(try owner.seal(token, at: key)) }
        let contents = sealed
        let replica = self.replica
        // Replicas would only get in each other's way: each statement carries its own condition.
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            var writer = try RetiredTokenWriter(db: db, sealed: contents, replica: replica)
            for change in changes { try writer.apply(change) }
            try writer.finish()
        }
    }

    package func feed(
        of owner: RetiredTokenOwner,
        after cursor: RetiredTokenCursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        try await self.database.read(scope: .tenant(owner.tenant.text)) { db in
            let epoch = try StoreEpoch.text(db)
            let start = cursor ?? RetiredTokenCursor(epoch: epoch, transaction: .min, position: 0)
            guard start.epoch == epoch else {
                throw GatewayError(
                    .invalid,
                    "cursor is from before the store was restored or copied; begin again without one"
                )
            }
            // What a transaction feeds that is still under way will stand before what later ones have fed.
            let found = try db.rows(
                """
                SELECT position, key, kind, state, since, sealed, fed_in FROM retired_tokens
                WHERE tenant = $1 AND position IS NOT NULL AND (fed_in, position) > ($2, $3)
                    AND fed_in <= gateway_change_horizon()
                ORDER BY fed_in, position LIMIT $4
                """,
                [.text(owner.tenant), .int(start.transaction), .int(start.position), .int(limit + 1)]
            ) { row in
                let place = RetiredTokenCursor(
                    epoch: epoch,
                    transaction: try row.int64(6),
                    position: try row.int64(0)
                )
                return (place: place, token: try Self.token(row, of: owner))
            }
            let shown = found.prefix(limit)
            let tokens = shown.compactMap(\.token)
            return RetiredTokenFeed(
                tokens: tokens,
                cursor: shown.last?.place ?? start,
                hasMore: found.count > limit,
                unreadable: shown.count - tokens.count
            )
        }
    }

    package func trim(
        reportedBefore cutoff: Timestamp,
        keeping maxEntries: Int
    ) async throws(GatewayError) -> [RetiredTokenEntry] {
        let replica = self.replica
        return try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            if let replica {
                try db.execute(
                    "DELETE FROM retired_token_changes WHERE noted_at < gateway_time() - $1",
                    [.microseconds(Self.changesKept)]
                )
                try db.execute(
                    "DELETE FROM retired_token_counts WHERE replica NOT IN (SELECT id FROM replicas) AND replica <> $1",
                    [.text(replica)]
                )
            }
            return try RetiredTokenTrim(db: db, isShared: replica != nil).trim(before: cutoff, keeping: maxEntries)
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

    /// What replicas but one have counted in all, of those that counted since a transaction.
    private static func counts(
        _ db: any SQLConnection,
        since transaction: Int64,
        but replica: String?
    ) throws -> [RetiredTokenCount] {
        try db.rows(
            """
            SELECT tenant, replica, accepted, unregistered FROM retired_token_counts
            WHERE changed_in >= $1 AND replica <> $2
            """,
            [.int(transaction), .text(replica ?? "")]
        ) { row in
            RetiredTokenCount(
                RetiredTokenCount.Counter(tenant: try row.tenant(0), replica: try row.text(1)),
                accepted: try row.int(2),
                unregistered: try row.int(3)
            )
        }
    }

    /// The detectors that were saved since a transaction.
    private static func detectors(
        _ db: any SQLConnection,
        since transaction: Int64
    ) throws -> [TenantID: SpikeDetector] {
        let detectors = try db.rows(
            """
            SELECT tenant, sent, unregistered, aged_at, surplus, spike_since, spike_sent, spike_unregistered,
                transitions
            FROM retired_token_lists WHERE changed_in >= $1
            """,
            [.int(transaction)]
        ) { row in
            var phase = SpikeDetector.Phase.steady
            if let since = try row.optionalTime(5) {
                phase = .spike(since: since, SpikeDetector.Tally(sent: try row.real(6), unregistered: try row.real(7)))
            }
            let detector = SpikeDetector(
                phase: phase,
                history: SpikeDetector.Tally(sent: try row.real(1), unregistered: try row.real(2)),
                agedAt: try row.time(3),
                surplus: try row.int(4),
                transitions: try row.int(8)
            )
            return (try row.tenant(0), detector)
        }
        return Dictionary(uniqueKeysWithValues: detectors)
    }
}

private struct RetiredTokenWriter {
    /// The last positions given away, of the tenants that the transaction has met; `nil` for one that is gone.
    private var positions: [RetiredTokenOwner: Int64?] = [:]
    private let db: any SQLConnection
    /// The sealed texts of the tokens that are put, in their order.
    private var sealed: IndexingIterator<[[UInt8]]>
    /// The transaction's number; 0 where each comes after all others, and positions go on from one to the next.
    private let transaction: Int64
    private let replica: String?
    /// The tokens that other replicas are to read again, in the order of the changes.
    private var changed: [[SQLValue]] = []

    init(db: any SQLConnection, sealed: [[UInt8]], replica: String?) throws {
        (self.db, self.replica) = (db, replica)
        self.sealed = sealed.makeIterator()
        self.transaction = try db.first("SELECT gateway_transaction()") { try $0.int64(0) } ?? 0
    }

    mutating func apply(_ change: RetiredTokenChange) throws {
        var sealed: [UInt8] = []
        if case .put = change { sealed = self.sealed.next() ?? [] }
        guard try self.isThere(change.owner) else { return }
        let tenant = SQLValue.text(change.owner.tenant)
        switch change {
        case .put(let owner, let key, let token, let replacement, let keepsSince):
            let position = token.state.isFed ? self.nextPosition(of: owner) : nil
            try self.db.execute(
                """
                INSERT INTO retired_tokens
                    (tenant, key, kind, state, since, reported_at, replacement, sealed, fed_in, position)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $11, $9)
                ON CONFLICT (tenant, key) DO UPDATE SET
                    kind = excluded.kind, state = excluded.state,
                    since = CASE WHEN CAST($10 AS BIGINT) = 1 THEN retired_tokens.since ELSE excluded.since END,
                    reported_at = excluded.reported_at, replacement = excluded.replacement, sealed = excluded.sealed,
                    fed_in = excluded.fed_in, position = excluded.position
                """,
                [
                    tenant, .key(key), .text(token.kind.rawValue), .text(token.state.rawValue),
                    .time(token.since), .time(token.since), .int(Int(replacement)), .bytes(sealed),
                    .int(position), .bool(keepsSince), .int(self.transaction),
                ]
            )
        case .move(let owner, let keys, let state):
            let moves = keys.map { key in (key: key, position: state.isFed ? self.nextPosition(of: owner) : nil) }
            try self.db.executeMany(
                // Another replica may have been first.
                """
                UPDATE retired_tokens SET state = $3, fed_in = $5, position = $4
                WHERE tenant = $1 AND key = $2 AND state = 'pending'
                """,
                // In one order, so that transactions don't wait for each other in a circle.
                moves.sorted { $0.key < $1.key }
                    .map { [tenant, .key($0.key), .text(state.rawValue), .int($0.position), .int(self.transaction)] }
            )
        case .touch(_, let key, let time):
            try self.db.execute(
                "UPDATE retired_tokens SET reported_at = $3 WHERE tenant = $1 AND key = $2",
                [tenant, .key(key), .time(time)]
            )
        case .remove(_, let key):
            try self.db.execute(
                "DELETE FROM retired_tokens WHERE tenant = $1 AND key = $2",
                [tenant, .key(key)]
            )
        case .save(let owner, let detector):
            try self.save(detector, of: owner)
        case .count(let owner, let accepted, let unregistered):
            try self.add(accepted, unregistered, of: owner)
        }
        guard self.replica != nil else { return }
        self.changed += change.keys.map { [tenant, .key($0), .int(self.transaction)] }
    }

    /// Notes what the transaction has come to.
    func finish() throws {
        if !self.changed.isEmpty {
            try self.db.executeMany(
                """
                INSERT INTO retired_token_changes (tenant, key, changed_in, noted_at)
                VALUES ($1, $2, $3, gateway_time())
                """,
                self.changed
            )
        }
        guard self.transaction == 0 else { return }
        for case (let owner, let position?) in self.positions where position > 0 {
            try self.db.execute(
                """
                INSERT INTO retired_token_lists
                    (tenant, last_position, sent, unregistered, aged_at, surplus, spike_since, spike_sent,
                    spike_unregistered, transitions, changed_in)
                VALUES ($1, $2, 0, 0, $3, 0, NULL, 0, 0, 0, 0)
                ON CONFLICT (tenant) DO UPDATE SET last_position = excluded.last_position
                """,
                [.text(owner.tenant), .int(position), .time(owner.createdAt)]
            )
        }
    }

    /// Whether a tenant is there, and not another one of its name.
    private mutating func isThere(_ owner: RetiredTokenOwner) throws -> Bool {
        if let position = self.positions[owner] { return position != nil }
        guard try self.db.hasTenant(owner.tenant, createdAt: owner.createdAt) else {
            self.positions.updateValue(nil, forKey: owner)
            return false
        }
        var position: Int64?
        if self.transaction == 0 {
            position = try self.db.first(
                "SELECT last_position FROM retired_token_lists WHERE tenant = $1",
                [.text(owner.tenant)]
            ) { try $0.int64(0) }
        }
        self.positions.updateValue(position ?? 0, forKey: owner)
        return true
    }

    private mutating func nextPosition(of owner: RetiredTokenOwner) -> Int64 {
        let next = ((self.positions[owner] ?? nil) ?? 0) + 1
        self.positions.updateValue(next, forKey: owner)
        return next
    }

    /// Saves a detector in place of one that has been through less, or as much.
    private func save(_ detector: SpikeDetector, of owner: RetiredTokenOwner) throws {
        var since: Timestamp?
        var tally = SpikeDetector.Tally()
        if case .spike(let start, let spike) = detector.phase { (since, tally) = (start, spike) }
        try self.db.execute(
            """
            INSERT INTO retired_token_lists
                (tenant, last_position, sent, unregistered, aged_at, surplus, spike_since, spike_sent,
                spike_unregistered, transitions, changed_in)
            VALUES ($1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            ON CONFLICT (tenant) DO UPDATE SET
                sent = excluded.sent, unregistered = excluded.unregistered, aged_at = excluded.aged_at,
                surplus = excluded.surplus, spike_since = excluded.spike_since, spike_sent = excluded.spike_sent,
                spike_unregistered = excluded.spike_unregistered, transitions = excluded.transitions,
                changed_in = excluded.changed_in
            WHERE retired_token_lists.transitions <= excluded.transitions
            """,
            [
                .text(owner.tenant), .double(detector.history.sent), .double(detector.history.unregistered),
                .time(detector.agedAt), .int(detector.surplus), .time(since), .double(tally.sent),
                .double(tally.unregistered), .int(detector.transitions), .int(self.transaction),
            ]
        )
    }

    /// Adds to what this replica has counted, in a row of its own, for which nobody else waits.
    private func add(_ accepted: Int, _ unregistered: Int, of owner: RetiredTokenOwner) throws {
        guard let replica = self.replica else { return }
        try self.db.execute(
            """
            INSERT INTO retired_token_counts (tenant, replica, accepted, unregistered, changed_in)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (tenant, replica) DO UPDATE SET
                accepted = retired_token_counts.accepted + excluded.accepted,
                unregistered = retired_token_counts.unregistered + excluded.unregistered,
                changed_in = excluded.changed_in
            """,
            [.text(owner.tenant), .text(replica), .int(accepted), .int(unregistered), .int(self.transaction)]
        )
    }
}

private struct RetiredTokenTrim {
    /// The most entries that one round drops, so that other writes need not wait long.
    private static let maxDropped = 20_000

    let db: any SQLConnection
    /// Whether other replicas have to hear of it.
    let isShared: Bool

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
        if self.isShared {
            try self.db.executeMany(
                """
                INSERT INTO retired_token_changes (tenant, key, changed_in, noted_at)
                VALUES ($1, $2, gateway_transaction(), gateway_time())
                """,
                entries.map { [.text($0.tenant), .key($0.key)] }
            )
        }
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
