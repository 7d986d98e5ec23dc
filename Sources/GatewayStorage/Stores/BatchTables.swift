import FCMModel
import Foundation
import GatewayCore

/// The tables of batches within a transaction.
struct BatchTables {
    enum ChunkState: Int {
        case waiting, claimed, held, done

        var value: SQLValue { .int(self.rawValue) }
    }

    /// The numbers by which a tenant's bounds are kept.
    struct Usage {
        /// The messages and unfinished batches, and the waiting recipients of the latter.
        var messages = 0
        var batches = 0
        var waiting = 0
        /// The additions of this transaction.
        var added = (messages: 0, recipients: 0, bytes: 0)
    }

    /// The numbers of some tenants, and those of the whole store.
    struct Usages {
        var tenants: [TenantID: Usage] = [:]
        var recipients = 0
        var bytes = 0

        mutating func add(messages: Int = 0, recipients: Int = 0, bytes: Int = 0, of tenant: TenantID) {
            var usage = self.tenants[tenant] ?? Usage()
            usage.added.messages += messages
            usage.added.recipients += recipients
            usage.added.bytes += bytes
            self.tenants[tenant] = usage
            self.recipients += recipients
            self.bytes += bytes
        }
    }

    let db: any SQLConnection
    let isShared: Bool
    let owner: ReplicaID
    let bounds: BatchBounds

    static let hold = "UPDATE batch_chunks SET state = 2 WHERE batch = $1 AND state = 0"

    static func time(_ db: any SQLConnection) throws -> Timestamp {
        try db.first("SELECT gateway_time()") { try $0.time(0) } ?? Timestamp(microseconds: 0)
    }

    func time() throws -> Timestamp { try Self.time(self.db) }

    func key(of claim: Batch.Claim) -> [SQLValue] {
        [.text(claim.batch), .int(claim.chunk), .int(claim.round), .text(self.owner.text)]
    }

    // MARK: Batches

    static func batch(_ id: String, of tenant: TenantID?, _ db: any SQLConnection) throws -> Batch? {
        let batch = try db.first("SELECT \(Batch.columns) FROM batches WHERE id = $1", [.text(id)], Batch.init)
        return tenant == nil || batch?.tenant == tenant ? batch : nil
    }

    /// Reads batches and keeps other transactions from changing them.
    func lockedBatches(_ ids: some Sequence<String>) throws -> [String: Batch] {
        var batches: [String: Batch] = [:]
        try self.db.queryMany(
            "SELECT \(Batch.columns) FROM batches WHERE id = $1 \(self.isShared ? "FOR UPDATE" : "")",
            // One order for all, so that transactions don't deadlock.
            Set(ids).sorted().map { [.text($0)] }
        ) { _, row in
            let batch = try Batch(row)
            batches[batch.id] = batch
        }
        return batches
    }

    func lockedBatch(_ id: String, of tenant: TenantID?) throws -> Batch? {
        let batch = try self.lockedBatches([id])[id]
        return tenant == nil || batch?.tenant == tenant ? batch : nil
    }

    /// Stores what may change of locked batches.
    func save(_ batches: some Sequence<Batch>) throws {
        try self.db.executeMany(
            """
            UPDATE batches SET state = $2, reason = $3, credential = $4, api_key = $5, canary_over = $6, due_at = $7,
                expires_at = $8, started_at = $9, finished_at = $10, total = $11, accepted = $12, rejected = $13,
                unknown = $14, expired = $15, cancelled = $16, delete_at = $17
            WHERE id = $1
            """,
            batches.map { [.text($0.id)] + $0.changeableValues }
        )
    }

    func partCount(of id: String) throws -> Int? {
        try self.db.first("SELECT count(*) FROM batch_parts WHERE batch = $1", [.text(id)]) { try $0.int(0) }
    }

    /// Deletes some batches that are over, those that ended first. Returns their number.
    func delete(_ condition: String, _ values: [SQLValue], limit: Int, _ usages: inout Usages) throws -> Int {
        let deleted = try self.db.rows(
            """
            WITH old AS MATERIALIZED (
                SELECT id FROM batches
                WHERE delete_at IS NOT NULL AND \(condition)
                    AND NOT EXISTS (SELECT 1 FROM batch_chunks WHERE batch = batches.id AND state IN (0, 1))
                ORDER BY delete_at LIMIT \(limit) \(self.isShared ? "FOR UPDATE SKIP LOCKED" : ""))
            DELETE FROM batches WHERE id IN (SELECT id FROM old)
            RETURNING tenant, total, weight
            """,
            values
        ) { (tenant: try $0.tenant(0), recipients: try $0.int(1), bytes: try $0.int(2)) }
        for row in deleted { usages.add(recipients: -row.recipients, bytes: -row.bytes, of: row.tenant) }
        return deleted.count
    }

    // MARK: Chunks

    func insert(_ parts: [(batch: Batch, part: Int, chunks: [Batch.Chunk])]) throws {
        let numbered = parts.flatMap { batch, part, chunks in
            chunks.enumerated()
                .map { (batch: batch, number: part * Batch.Chunk.maxPerPart + $0.offset, chunk: $0.element) }
        }
        try self.db.executeMany(
            """
            INSERT INTO batch_chunks
                (batch, number, tenant, state, priority, due_at, pending, round, slice, max_slice, canary, retries,
                owner, lease_until)
            VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, 0, 0, '', 0)
            """,
            numbered.map { batch, number, chunk in
                let state: ChunkState = batch.state == .queued && !batch.options.isSpread ? .waiting : .held
                return [
                    .text(batch.id), .int(number), .text(batch.tenant), state.value,
                    .int(batch.options.priority.order), .time(batch.dueAt), .int(chunk.count),
                ]
            }
        )
        try self.db.executeMany(
            "INSERT INTO batch_contents (batch, number, pending, results) VALUES ($1, $2, $3, $4)",
            numbered.map { [.text($0.batch.id), .int($0.number), .bytes($0.chunk.pending), .bytes([])] }
        )
    }

    /// Lets a batch's chunks be claimed: at once, spread over its window, or those of its canary first.
    func begin(_ batch: Batch) throws {
        let window = batch.options.windowSeconds
        if batch.options.isSpread {
            try self.db.execute(
                """
                UPDATE batch_chunks SET
                    due_at = $2 + CAST(places.earlier AS BIGINT) * $3 / $4, max_slice = $5,
                    canary = CAST(CASE WHEN places.earlier >= $6 THEN 0 WHEN pending < $6 - places.earlier THEN pending
                        ELSE $6 - places.earlier END AS BIGINT)
                FROM (SELECT number AS place, sum(pending) OVER (ORDER BY number) - pending AS earlier
                    FROM batch_chunks WHERE batch = $1) AS places
                WHERE batch = $1 AND number = places.place
                """,
                [
                    .text(batch.id), .time(batch.dueAt), .int((window ?? 0) * 1_000_000),
                    .int(max(1, batch.counts.total)), .int(window.map { 1 + batch.counts.total * 2 / $0 } ?? 0),
                    .int(batch.options.canary?.recipients ?? 0),
                ]
            )
        }
        try self.release(batch, from: batch.dueAt)
    }

    /// Lets the chunks of a batch be claimed that were held back, at a time or later; during a canary, its own alone.
    func release(_ batch: Batch, from time: Timestamp) throws {
        try self.db.execute(
            """
            UPDATE batch_chunks SET state = 0, due_at = CASE WHEN due_at < $2 THEN $2 ELSE due_at END
            WHERE batch = $1 AND state = 2 \(batch.isInCanary ? "AND canary > 0" : "")
            """,
            [.text(batch.id), .time(time)]
        )
        _ = try self.db.exists("SELECT gateway_notify()")
    }

    func moveChunks(of batch: inout Batch, after change: BatchChange) throws {
        switch change {
        case .start:
            try self.begin(batch)
        case .pause:
            try self.db.execute(Self.hold, [.text(batch.id)])
        case .resume:
            try self.release(batch, from: batch.dueAt)
        case .cancel, .expire:
            // A slice that has begun is recorded when it ends.
            // So is one that was begun by a process that has ended: the next claim looks for its outcomes.
            let left = try self.db.rows(
                """
                UPDATE batch_chunks SET state = CASE WHEN slice = 0 THEN 3 ELSE 0 END, due_at = gateway_time()
                WHERE batch = $1 AND state IN (0, 2)
                RETURNING CASE WHEN slice = 0 THEN pending ELSE 0 END
                """,
                [.text(batch.id)]
            ) { try $0.int(0) }
            batch.giveUp(left.reduce(0, +))
            guard batch.isMessage else { return }
            var usages = Usages()
            usages.add(messages: -1, of: batch.tenant)
            try self.store(usages)
        }
    }

    /// Returns the tenants with waiting chunks, and the time until the first of them is due, ordered by it.
    static func firstDue(_ db: any SQLConnection) throws -> [(tenant: TenantID, wait: Duration)] {
        try db.rows(
            """
            WITH RECURSIVE waiting (tenant) AS (
                SELECT (SELECT tenant FROM batch_chunks WHERE state = 0 ORDER BY tenant LIMIT 1)
                UNION ALL
                SELECT (SELECT c.tenant FROM batch_chunks AS c WHERE c.state = 0 AND c.tenant > waiting.tenant
                    ORDER BY c.tenant LIMIT 1)
                FROM waiting WHERE waiting.tenant IS NOT NULL
            ), priorities (priority) AS (VALUES (0), (1), (2)), firsts (tenant, due_at) AS (
                SELECT waiting.tenant, (
                    SELECT c.due_at FROM batch_chunks AS c
                    WHERE c.state = 0 AND c.tenant = waiting.tenant AND c.priority = priorities.priority
                    ORDER BY c.due_at LIMIT 1)
                FROM waiting CROSS JOIN priorities WHERE waiting.tenant IS NOT NULL
            )
            SELECT tenant, min(due_at) - (SELECT gateway_time()) FROM firsts WHERE due_at IS NOT NULL
            GROUP BY tenant ORDER BY 2
            """
        ) { (tenant: try $0.tenant(0), wait: .microseconds(try $0.int64(1))) }
    }

    /// Takes due chunks: of tenant `$1` and priority `$2`, at most `$3`, for owner `$4`, with a lease of `$5`. It reads no
    /// chunk that is due later, however many there are.
    static func claimStatement(isShared: Bool) -> String {
        """
        WITH now AS MATERIALIZED (SELECT gateway_time() AS t), next AS MATERIALIZED (
            SELECT c.batch, c.number FROM batch_chunks AS c
            WHERE c.tenant = $1 AND c.state = 0 AND c.priority = $2 AND c.due_at <= (SELECT t FROM now)
            ORDER BY c.due_at, c.batch, c.number LIMIT $3 \(isShared ? "FOR UPDATE SKIP LOCKED" : ""))
        UPDATE batch_chunks SET state = 1, owner = $4, lease_until = (SELECT t FROM now) + $5
        WHERE state = 0 AND (batch, number) IN (SELECT batch, number FROM next)
        RETURNING batch, number, round, slice, retries, due_at, pending, max_slice, canary
        """
    }

    /// Claims chunks in the order of their priority and due time, up to a number of recipients, but at least one chunk.
    func claim(
        of tenant: TenantID,
        chunks limit: Int,
        slice: Int,
        recipients: Int,
        lease: Duration
    ) throws -> [Batch.Slice] {
        let statement = Self.claimStatement(isShared: self.isShared)
        var claims: [Batch.Claim] = []
        for priority in Batch.Priority.allCases where claims.count < limit {
            claims += try self.db.rows(
                statement,
                [
                    .text(tenant), .int(priority.order), .int(limit - claims.count), .text(self.owner.text),
                    .microseconds(lease),
                ]
            ) { row in
                var claim = Batch.Claim(
                    batch: try row.text(0),
                    chunk: try row.int(1),
                    round: try row.int(2),
                    slice: try row.int(3),
                    retries: try row.int(4),
                    dueAt: try row.time(5)
                )
                if claim.slice == 0 {
                    let bounds = [try row.int(6), slice] + [try row.int(7), try row.int(8)].filter { $0 > 0 }
                    claim.slice = bounds.min() ?? slice
                }
                return claim
            }
        }
        var rest = recipients
        let kept = claims.enumerated()
            .prefix { place, claim in
                defer { rest -= claim.slice }
                return place == 0 || rest >= claim.slice
            }
            .map(\.element)
        try self.db.executeMany(
            "UPDATE batch_chunks SET state = 0 WHERE batch = $1 AND number = $2",
            claims.dropFirst(kept.count).map { [.text($0.batch), .int($0.chunk)] }
        )
        try self.db.executeMany(
            "UPDATE batch_chunks SET slice = $3 WHERE batch = $1 AND number = $2 AND slice = 0",
            kept.map { [.text($0.batch), .int($0.chunk), .int($0.slice)] }
        )
        return try self.slices(of: kept)
    }

    /// Reads what claimed slices are made of. Their batches are running from now on. A batch that is locked is left to the
    /// next claim: the transaction that holds it may wait for a chunk of this one.
    private func slices(of claims: [Batch.Claim]) throws -> [Batch.Slice] {
        var batches: [String: (batch: Batch, message: [UInt8])] = [:]
        let ids = Set(claims.map(\.batch)).sorted()
        try self.db.queryMany(
            "SELECT \(Batch.columns), sealed FROM batches WHERE id = $1",
            ids.map { [.text($0)] }
        ) { place, row in batches[ids[place]] = (try Batch(row), try row.bytes(Batch.columnCount)) }
        let time = try self.time()
        let unstarted = batches.values.filter { $0.batch.startedAt == nil }.map(\.batch.id)
        try self.db.executeMany(
            """
            UPDATE batches SET state = CASE WHEN state = 'queued' THEN 'running' ELSE state END, started_at = $2
            WHERE id IN (SELECT id FROM batches WHERE id = $1 AND started_at IS NULL
                \(self.isShared ? "FOR UPDATE SKIP LOCKED" : ""))
            """,
            unstarted.sorted().map { [.text($0), .time(time)] }
        )
        var slices: [Batch.Slice] = []
        try self.db.queryMany(
            """
            SELECT batch_contents.pending, results, batch_chunks.pending FROM batch_contents
            JOIN batch_chunks
                ON batch_chunks.batch = batch_contents.batch AND batch_chunks.number = batch_contents.number
            WHERE batch_contents.batch = $1 AND batch_contents.number = $2
            """,
            claims.map { [.text($0.batch), .int($0.chunk)] }
        ) { place, row in
            guard let (batch, message) = batches[claims[place].batch] else { return }
            slices.append(
                Batch.Slice(
                    claim: claims[place],
                    batch: batch,
                    message: message,
                    pending: try row.bytes(0),
                    pendingCount: try row.int(2),
                    results: try row.bytes(1),
                    time: time
                )
            )
        }
        return slices
    }

    // MARK: Grouped changes

    /// Makes changes, of each kind with one statement each.
    func apply(_ changes: [BatchWrite]) throws -> [BatchWrite.Outcome] {
        var outcomes = Array(repeating: BatchWrite.Outcome.lost, count: changes.count)
        var (news, ends): ([(Int, BatchWrite.New)], [(Int, Batch.Claim, Batch.Recording?, Duration?)]) = ([], [])
        for (place, change) in changes.enumerated() {
            switch change {
            case .create(let new): news.append((place, new))
            case .record(let recording, let claim): ends.append((place, claim, recording, recording.wait))
            case .putBack(let claim, let wait): ends.append((place, claim, nil, wait))
            }
        }
        var usages = news.isEmpty ? Usages() : try self.usage(of: news.map(\.1.batch))
        for ((place, _, _, _), isDone) in zip(ends, try self.end(ends.map { ($0.1, $0.2, $0.3) }, &usages)) {
            outcomes[place] = isDone ? .done : .lost
        }
        for ((place, _), outcome) in zip(news, try self.create(news.map(\.1), &usages)) { outcomes[place] = outcome }
        try self.store(usages)
        return outcomes
    }

    /// Ends rounds, or returns slices without a result. Returns false for those that this process no longer holds.
    private func end(
        _ ends: [(claim: Batch.Claim, recording: Batch.Recording?, wait: Duration?)],
        _ usages: inout Usages
    ) throws -> [Bool] {
        guard !ends.isEmpty else { return [] }
        let batches = try self.lockedBatches(ends.map(\.claim.batch))
        let time = try self.time()
        var isEnded = Array(repeating: false, count: ends.count)
        try self.db.queryMany(
            """
            UPDATE batch_chunks SET
                state = CASE WHEN $5 = 0 AND $7 = 1 AND canary <= pending - coalesce($8, pending) THEN 2 ELSE $5 END,
                canary = CASE WHEN canary > pending - coalesce($8, pending)
                    THEN canary - pending + coalesce($8, pending) ELSE 0 END,
                due_at = $6, pending = coalesce($8, pending), round = round + $9,
                slice = CASE WHEN $9 = 1 THEN 0 ELSE slice END,
                retries = CASE WHEN $9 = 0 THEN retries WHEN $10 = 1 THEN retries + 1 ELSE 0 END
            WHERE batch = $1 AND number = $2 AND round = $3 AND owner = $4 AND state = 1
            RETURNING number
            """,
            ends.enumerated()
                .map { place, end in
                    let batch = batches[end.claim.batch]
                    let isLast = end.recording.map { $0.pendingCount == 0 || batch?.state.isOver ?? true } ?? false
                    let state: ChunkState = isLast ? .done : batch?.state == .paused ? .held : .waiting
                    let dueAt = end.wait.map { time.advanced(by: $0) } ?? end.recording?.dueAt ?? time
                    return self.key(of: end.claim) + [
                        state.value, .time(dueAt), .bool(batch?.isInCanary ?? false), .int(end.recording?.pendingCount),
                        .bool(end.recording != nil), .bool(end.recording?.isRetry ?? false),
                    ]
                }
        ) { place, _ in isEnded[place] = true }
        let recorded = ends.indices.compactMap { place -> (claim: Batch.Claim, recording: Batch.Recording)? in
            guard isEnded[place], let recording = ends[place].recording else { return nil }
            return (ends[place].claim, recording)
        }
        try self.db.executeMany(
            "UPDATE batch_contents SET pending = $3, results = $4 WHERE batch = $1 AND number = $2",
            recorded.map { [.text($0.batch), .int($0.chunk), .bytes($1.pending), .bytes($1.results)] }
        )
        try self.db.executeMany(
            "DELETE FROM idempotency_records WHERE tenant = $1 AND route = 'batch' AND key = $2",
            recorded.map { [.text(batches[$0.claim.batch]?.tenant.text), .bytes(IdempotencyKey(of: $0.claim).digest)] }
        )
        try self.count(recorded, in: batches, at: time, &usages)
        return isEnded
    }

    /// Adds outcomes to their batches, and ends those that have no recipient left.
    private func count(
        _ recorded: [(claim: Batch.Claim, recording: Batch.Recording)],
        in batches: [String: Batch],
        at time: Timestamp,
        _ usages: inout Usages
    ) throws {
        var changed: [Batch] = []
        for (id, rounds) in Dictionary(grouping: recorded, by: \.claim.batch).sorted(by: { $0.key < $1.key }) {
            guard var batch = batches[id] else { continue }
            batch.begin(at: time)
            for round in rounds { batch.add(round.recording) }
            if batch.finish(at: time), batch.isMessage { usages.add(messages: -1, of: batch.tenant) }
            switch batch.judgeCanary() {
            case .passed(let hold):
                if batch.state != .paused { try self.release(batch, from: time.advanced(by: hold)) }
            case .failed:
                try self.db.execute(Self.hold, [.text(id)])
            case nil:
                break
            }
            changed.append(batch)
        }
        try self.save(changed)
    }

    private func create(_ news: [BatchWrite.New], _ usages: inout Usages) throws -> [BatchWrite.Outcome] {
        guard !news.isEmpty else { return [] }
        let time = try self.time()
        let news = news.map { new in
            // A batch for now does not wait because its replica's clock is ahead.
            guard new.batch.dueAt <= new.batch.createdAt, new.batch.dueAt > time else { return new }
            var new = new
            new.batch.setDue(time)
            return new
        }
        var outcomes = Array(repeating: BatchWrite.Outcome.exists, count: news.count)
        var isStored = Array(repeating: false, count: news.count)
        // A repeat needs no room.
        var known: Set<Int> = []
        try self.db.queryMany(
            "SELECT 1 FROM batches WHERE id = $1",
            news.map { [.text($0.batch.id)] }
        ) { place, _ in known.insert(place) }
        let weights = news.map { $0.message.count + $0.chunks.weight }
        for (place, new) in news.enumerated() where !known.contains(place) {
            outcomes[place] = try self.admit(
                new.batch,
                recipients: new.batch.counts.total,
                weight: weights[place],
                &usages
            )
        }
        let admitted = news.indices.filter { outcomes[$0] == .done }
        let count = Batch.columnCount
        try self.db.queryMany(
            """
            INSERT INTO batches (\(Batch.columns), weight, sealed)
            SELECT \((1...count + 2).map { "$\($0)" }.joined(separator: ", "))
            FROM tenants WHERE id = $2
            ON CONFLICT (id) DO NOTHING RETURNING id
            """,
            admitted.map { news[$0].batch.values + [.int(weights[$0]), .bytes(news[$0].message)] }
        ) { place, _ in isStored[admitted[place]] = true }
        for place in admitted where !isStored[place] {
            let batch = news[place].batch
            usages.add(
                messages: batch.isMessage ? -1 : 0,
                recipients: -batch.counts.total,
                bytes: -weights[place],
                of: batch.tenant
            )
            outcomes[place] = try Self.batch(batch.id, of: nil, self.db) == nil ? .tenantGone : .exists
        }
        let stored = news.indices.filter { isStored[$0] }.map { news[$0] }
        try self.insert(stored.map { ($0.batch, 0, $0.chunks) })
        for new in stored where new.batch.state == .queued && new.batch.options.isSpread { try self.begin(new.batch) }
        // Notifications of single messages would cost more than the messages.
        if stored.contains(where: { !$0.batch.isMessage }) { _ = try self.db.exists("SELECT gateway_notify()") }
        return outcomes
    }

    // MARK: Bounds

    func usage(of batches: [Batch]) throws -> Usages {
        var usages = Usages()
        let sums = "CAST(coalesce(sum(recipients), 0) AS BIGINT), CAST(coalesce(sum(bytes), 0) AS BIGINT)"
        if let sum = try self.db.first("SELECT \(sums) FROM batch_usage", [], { (try $0.int(0), try $0.int(1)) }) {
            (usages.recipients, usages.bytes) = sum
        }
        for tenant in Set(batches.map(\.tenant)) {
            var usage = Usage()
            usage.messages =
                try self.db.first("SELECT messages FROM batch_usage WHERE tenant = $1", [.text(tenant)]) {
                    try $0.int(0)
                } ?? 0
            if batches.contains(where: { $0.tenant == tenant && !$0.isMessage }) {
                let own = try self.db.first(
                    """
                    SELECT count(*),
                        CAST(coalesce(sum(total - accepted - rejected - unknown - expired - cancelled), 0) AS BIGINT)
                    FROM batches WHERE tenant = $1 AND finished_at IS NULL AND is_message = 0
                    """,
                    [.text(tenant)]
                ) { (try $0.int(0), try $0.int(1)) }
                if let own { (usage.batches, usage.waiting) = own }
            }
            usages.tenants[tenant] = usage
        }
        return usages
    }

    /// Counts a new batch, or a part of an open one, if the bounds leave room for it. The batches that ended first make
    /// room in the store.
    func admit(_ batch: Batch, recipients: Int, weight: Int, _ usages: inout Usages) throws -> BatchWrite.Outcome {
        let usage = usages.tenants[batch.tenant, default: Usage()]
        let isPart = batch.state == .open && recipients > 0
        if batch.isMessage {
            guard usage.messages < self.bounds.maxMessagesPerTenant else { return .tenantFull }
        } else {
            guard usage.batches < self.bounds.maxUnfinishedPerTenant + (isPart ? 1 : 0),
                usage.waiting + recipients <= self.bounds.maxWaitingPerTenant
            else { return .tenantFull }
        }
        while usages.recipients + recipients > self.bounds.maxRecipients
            || usages.bytes + weight > self.bounds.maxBytes
        {
            guard try self.delete("TRUE", [], limit: 32, &usages) > 0 else { return .storeFull }
        }
        usages.tenants[batch.tenant]?.messages += batch.isMessage ? 1 : 0
        usages.tenants[batch.tenant]?.batches += batch.isMessage || isPart ? 0 : 1
        usages.tenants[batch.tenant]?.waiting += batch.isMessage ? 0 : recipients
        usages.add(messages: batch.isMessage ? 1 : 0, recipients: recipients, bytes: weight, of: batch.tenant)
        return .done
    }

    func store(_ usages: Usages) throws {
        try self.db.executeMany(
            """
            INSERT INTO batch_usage (tenant, messages, recipients, bytes)
            SELECT $1, $2, $3, $4 FROM tenants WHERE id = $1
            ON CONFLICT (tenant) DO UPDATE SET messages = batch_usage.messages + excluded.messages,
                recipients = batch_usage.recipients + excluded.recipients, bytes = batch_usage.bytes + excluded.bytes
            """,
            // One order for all, so that transactions don't deadlock.
            usages.tenants.filter { $0.value.added != (0, 0, 0) }.sorted { $0.key.text < $1.key.text }
                .map { tenant, usage in
                    let added = usage.added
                    return [.text(tenant), .int(added.messages), .int(added.recipients), .int(added.bytes)]
                }
        )
    }
}

extension [Batch.Chunk] {
    /// The bytes that count towards the store's bound.
    var weight: Int { self.reduce(0) { $0 + $1.pending.count + 200 } }
}

extension Batch.Priority {
    /// The value by which chunks are ordered.
    var order: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }
}

extension Batch.Options {
    /// True if the chunks are not all due at the batch's own time.
    fileprivate var isSpread: Bool { self.windowSeconds != nil || self.canary != nil }
}

extension Batch {
    static let columns = """
        id, tenant, kind, is_message, digest, label, created_by, options, created_at, state, reason, credential, api_key,
        canary_over, due_at, expires_at, started_at, finished_at, total, accepted, rejected, unknown, expired, cancelled,
        delete_at, retention
        """
    fileprivate static let columnCount = 26

    /// The values of the columns, in their order.
    fileprivate var values: [SQLValue] {
        [
            .text(self.id), .text(self.tenant), .string(self.kind.rawValue), .bool(self.isMessage),
            .bytes(self.digest), .text(self.label), .text(self.creatorID), .string(self.options.text),
            .time(self.createdAt),
        ] + self.changeableValues + [.microseconds(self.retention)]
    }

    fileprivate var changeableValues: [SQLValue] {
        [
            .string(self.state.rawValue), .text(self.reason?.rawValue), .text(self.credential), .text(self.keyID),
            .bool(self.isCanaryOver), .time(self.dueAt), .time(self.expiresAt), .time(self.startedAt),
            .time(self.finishedAt), .int(self.counts.total), .int(self.counts.accepted), .int(self.counts.rejected),
            .int(self.counts.unknown), .int(self.counts.expired), .int(self.counts.cancelled),
            .time(self.finishedAt?.advanced(by: self.retention)),
        ]
    }

    init(_ row: SQLRow) throws(DamagedValue) {
        self.init(
            id: try row.text(0),
            tenant: try row.tenant(1),
            kind: try row.parsed(2) { Target.Kind(rawValue: $0) },
            state: try row.parsed(9) { State(rawValue: $0) },
            label: try row.optionalText(5),
            keyID: try row.text(12),
            options: try row.parsed(7) { Options($0) },
            createdAt: try row.time(8),
            dueAt: try row.time(14),
            expiresAt: try row.time(15)
        )
        self.isMessage = try row.bool(3)
        self.digest = try row.bytes(4)
        self.creatorID = try row.text(6)
        if !row.isNull(10) { self.reason = try row.parsed(10) { Reason(rawValue: $0) } }
        self.credential = try row.optionalText(11)
        self.isCanaryOver = try row.bool(13)
        (self.startedAt, self.finishedAt) = (try row.optionalTime(16), try row.optionalTime(17))
        self.counts.total = try row.int(18)
        self.counts.accepted = try row.int(19)
        self.counts.rejected = try row.int(20)
        self.counts.unknown = try row.int(21)
        self.counts.expired = try row.int(22)
        self.counts.cancelled = try row.int(23)
        self.retention = .microseconds(try row.int64(25))
    }
}

extension Batch.Options {
    fileprivate var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Numbers, booleans and structures of them can always be encoded.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    fileprivate init?(_ text: String) {
        guard let options = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else { return nil }
        self = options
    }
}
