package import FCMModel
package import GatewayCore

/// Batches in a database that replicas may share.
///
/// A transaction that changes a batch and its chunks changes the batch's row first, so that two of them wait for each other
/// instead of deadlocking, and the later one sees the state that the earlier one has set.
package struct SQLBatchStore: BatchStore {
    private enum ChunkState: Int {
        case waiting, claimed, held, done

        var value: SQLValue { .int(self.rawValue) }
    }

    private static let columns = """
        id, tenant, state, reason, label, api_key, priority, window_s, resends_unknown, keeps_accepted, canary_recipients,
        canary_percent, canary_hold_s, created_at, due_at, expires_at, started_at, finished_at, total, accepted, rejected,
        unknown, expired, cancelled, kind, is_message, digest, credential, canary_over, is_dry_run, lifetime_s,
        created_by
        """

    private let database: any SQLDatabase
    private let owner: ReplicaID
    /// A process that has its store to itself needs none, but the store knows only chunks with a lease.
    private let leases: LeaseTerms

    package init(database: any SQLDatabase, owner: ReplicaID, leases: LeaseTerms) {
        (self.database, self.owner, self.leases) = (database, owner, leases)
    }

    private func write<T: Sendable>(
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.database.write(scope: .gateway, isolation: .readCommitted, body)
    }

    // MARK: For callers

    package func create(
        _ batch: Batch,
        message: [UInt8],
        chunks: [Batch.Chunk],
        within bounds: BatchBounds
    ) async throws(GatewayError) -> Bool {
        try await self.write { db in
            if try Self.batch(batch.id, db) != nil { return false }
            let canary = batch.options.canary
            let count = try db.execute(
                """
                INSERT INTO batches (\(Self.columns), weight, sealed)
                SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, NULL, NULL,
                    0, 0, 0, 0, 0, 0, $17, $18, $19, NULL, 0, $20, $21, $6, $22, $23
                FROM tenants WHERE id = $2
                ON CONFLICT (id) DO NOTHING
                """,
                [
                    .text(batch.id), .text(batch.tenant), .string(batch.state.rawValue), .text(batch.reason?.rawValue),
                    .text(batch.label), .text(batch.keyID), .int(batch.options.priority.rawValue),
                    .int(batch.options.windowSeconds), .bool(batch.options.resendsUnknown),
                    .bool(batch.options.keepsAccepted), .int(canary?.recipients), .int(canary?.maxRejectedPercent),
                    .int(canary?.holdSeconds), .time(batch.createdAt), .time(batch.dueAt), .time(batch.expiresAt),
                    .string(batch.kind.rawValue), .bool(batch.isMessage), .bytes(batch.digest),
                    .bool(batch.options.isDryRun), .int(batch.options.lifetimeSeconds), .int(message.count),
                    .bytes(message),
                ]
            )
            guard count > 0 else {
                if try Self.batch(batch.id, db) != nil { return false }
                throw GatewayError(.notFound, "There is no such tenant any more")
            }
            try Self.insert(chunks, of: batch, part: 0, db)
            try Self.require(bounds, of: batch, db)
            if batch.state == .queued { try Self.begin(batch.id, db) }
            return true
        }
    }

    package func add(
        part number: Int,
        kind: Target.Kind,
        digest: [UInt8],
        chunks: [Batch.Chunk],
        to id: String,
        of tenant: TenantID,
        within bounds: BatchBounds
    ) async throws(GatewayError) {
        try await self.write { db in
            // Locks the row, so that a start waits for this part or this part sees the start.
            try db.execute(
                "UPDATE batches SET kind = CASE WHEN total = 0 THEN $3 ELSE kind END WHERE id = $1 AND tenant = $2",
                [.text(id), .text(tenant), .string(kind.rawValue)]
            )
            guard let batch = try Self.batch(id, of: tenant, db) else { throw Self.noBatch }
            let known = try db.first(
                "SELECT digest FROM batch_parts WHERE batch = $1 AND part = $2",
                [.text(id), .int(number)]
            ) { try $0.bytes(0) }
            if let known {
                guard known == digest else {
                    throw GatewayError(.conflict, "The part was uploaded with another content")
                }
                return
            }
            guard batch.state == .open, batch.kind == kind else {
                throw GatewayError(
                    .preconditionFailed,
                    batch.state == .open
                        ? "Its other parts list \(batch.kind.rawValue)" : "The batch is not open any more"
                )
            }
            let recipients = chunks.reduce(0) { $0 + $1.count }
            try db.execute(
                "INSERT INTO batch_parts (batch, part, digest, recipients) VALUES ($1, $2, $3, $4)",
                [.text(id), .int(number), .bytes(digest), .int(recipients)]
            )
            try Self.insert(chunks, of: batch, part: number, db)
            try Self.require(bounds, of: batch, db)
        }
    }

    private static func insert(_ chunks: [Batch.Chunk], of batch: Batch, part: Int, _ db: any SQLConnection) throws {
        let numbered = chunks.enumerated()
            .map { (number: part * Batch.Chunk.maxPerPart + $0.offset, chunk: $0.element) }
        try db.executeMany(
            """
            INSERT INTO batch_chunks
                (batch, number, tenant, state, priority, due_at, pending, round, slice, max_slice, canary, retries,
                owner, lease_until)
            VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, 0, 0, '', 0)
            """,
            numbered.map { number, chunk in
                [
                    .text(batch.id), .int(number), .text(batch.tenant), ChunkState.held.value,
                    .int(batch.options.priority.rawValue), .time(batch.dueAt), .int(chunk.count),
                ]
            }
        )
        try db.executeMany(
            "INSERT INTO batch_contents (batch, number, pending, results) VALUES ($1, $2, $3, $4)",
            numbered.map { number, chunk in [.text(batch.id), .int(number), .bytes(chunk.pending), .bytes([])] }
        )
        try db.execute(
            "UPDATE batches SET total = total + $2, weight = weight + $3 WHERE id = $1",
            [
                .text(batch.id), .int(chunks.reduce(0) { $0 + $1.count }),
                .int(chunks.reduce(0) { $0 + $1.pending.count + 200 }),
            ]
        )
    }

    /// Notes that something of a tenant is due at a time.
    private static func note(_ time: Timestamp, of tenant: TenantID, _ db: any SQLConnection) throws {
        try db.execute(
            """
            INSERT INTO batch_due (tenant, due_at) VALUES ($1, $2)
            ON CONFLICT (tenant) DO UPDATE SET
                due_at = CASE WHEN excluded.due_at < batch_due.due_at THEN excluded.due_at ELSE batch_due.due_at END
            """,
            [.text(tenant), .time(time)]
        )
    }

    /// Keeps the bounds. The batches that ended first make room in the store.
    private static func require(_ bounds: BatchBounds, of batch: Batch, _ db: any SQLConnection) throws {
        let sums = "CAST(coalesce(sum(total), 0) AS BIGINT), CAST(coalesce(sum(weight), 0) AS BIGINT)"
        func hasRoom() throws -> Bool {
            let all = try db.first("SELECT \(sums) FROM batches") { (count: try $0.int(0), bytes: try $0.int(1)) }
            return all.map { $0.count <= bounds.maxRecipients && $0.bytes <= bounds.maxBytes } ?? true
        }
        let own = try db.first(
            """
            SELECT count(*),
                CAST(coalesce(sum(total - accepted - rejected - unknown - expired - cancelled), 0) AS BIGINT)
            FROM batches WHERE tenant = $1 AND finished_at IS NULL AND is_message = $2
            """,
            [.text(batch.tenant), .bool(batch.isMessage)]
        ) { (batches: try $0.int(0), waiting: try $0.int(1)) }
        let most = batch.isMessage ? bounds.maxMessagesPerTenant : bounds.maxUnfinishedPerTenant
        if let own, own.batches > most || own.waiting > bounds.maxWaitingPerTenant {
            throw GatewayError(
                .invalid,
                batch.isMessage
                    ? "A tenant may have \(most) messages waiting"
                    : "A tenant may have \(most) unfinished batches, with \(bounds.maxWaitingPerTenant) waiting recipients"
            )
        }
        while try !hasRoom() {
            let evicted = try db.execute(
                """
                DELETE FROM batches WHERE id IN (
                    SELECT id FROM batches WHERE finished_at IS NOT NULL AND \(Self.isIdle)
                    ORDER BY finished_at LIMIT 1)
                """
            )
            guard evicted > 0 else {
                throw GatewayError(.overloaded, "As many recipients of batches are kept as may be; repeat later")
            }
        }
    }

    package func start(
        _ id: String,
        of tenant: TenantID,
        parts: Int,
        recipients: Int,
        keyID: String
    ) async throws(GatewayError) -> Batch? {
        try await self.write { db in
            let started = try db.execute(
                """
                UPDATE batches SET state = 'queued', api_key = $5,
                    due_at = CASE WHEN due_at < gateway_time() THEN gateway_time() ELSE due_at END
                WHERE id = $1 AND tenant = $2 AND state = 'open' AND total = $4
                    AND (SELECT count(*) FROM batch_parts WHERE batch = $1) = $3
                """,
                [.text(id), .text(tenant), .int(parts), .int(recipients), .text(keyID)]
            )
            if started > 0 { try Self.begin(id, db) }
            return try Self.batch(id, of: tenant, db)
        }
    }

    /// Lets a batch's chunks be claimed: at once, spread over its window, or those of its canary first.
    private static func begin(_ id: String, _ db: any SQLConnection) throws {
        try db.execute(
            "UPDATE batches SET expires_at = due_at + lifetime_s * 1000000 WHERE id = $1",
            [.text(id)]
        )
        guard let batch = try Self.batch(id, db) else { return }
        let (canary, window) = (batch.options.canary?.recipients, batch.options.windowSeconds)
        if canary != nil || window != nil {
            try db.execute(
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
                    .text(id), .time(batch.dueAt), .int((window ?? 0) * 1_000_000), .int(max(1, batch.counts.total)),
                    .int(window.map { 1 + batch.counts.total * 2 / $0 } ?? 0), .int(canary ?? 0),
                ]
            )
        }
        try Self.release(batch, from: batch.dueAt, db)
    }

    /// Lets the chunks of a batch be claimed that were held back, at a time or later; during a canary, its own alone.
    private static func release(_ batch: Batch, from time: Timestamp, _ db: any SQLConnection) throws {
        let isCanary = batch.options.canary != nil && !batch.isCanaryOver
        try db.execute(
            """
            UPDATE batch_chunks SET state = $2, due_at = CASE WHEN due_at < $4 THEN $4 ELSE due_at END
            WHERE batch = $1 AND state = $3 \(isCanary ? "AND canary > 0" : "")
            """,
            [.text(batch.id), ChunkState.waiting.value, ChunkState.held.value, .time(time)]
        )
        try Self.note(time, of: batch.tenant, db)
        // Notifications of single messages would cost more than the messages.
        if !batch.isMessage { _ = try db.exists("SELECT gateway_notify()") }
    }

    package func apply(
        _ change: BatchChange,
        to id: String,
        of tenant: TenantID?
    ) async throws(GatewayError) -> Batch? {
        try await self.write { db in
            let (states, assignment, values): (String, String, [SQLValue]) =
                switch change {
                case .pause(let reason, let credential):
                    (
                        "'queued', 'running'", "state = 'paused', reason = $3, credential = $4",
                        [.string(reason.rawValue), .text(credential)]
                    )
                case .resume(let keyID):
                    (
                        "'paused'",
                        "state = CASE WHEN started_at IS NULL THEN 'queued' ELSE 'running' END, reason = NULL, "
                            + "credential = NULL, api_key = $3",
                        [.string(keyID)]
                    )
                case .cancel(let reason):
                    (
                        "'open', 'queued', 'running', 'paused'",
                        "state = 'cancelled', reason = $3, finished_at = gateway_time()", [.text(reason?.rawValue)]
                    )
                case .expire:
                    (
                        "'queued', 'running', 'paused'",
                        "state = 'expired', reason = NULL, finished_at = gateway_time()", []
                    )
                }
            let changed = try db.execute(
                """
                UPDATE batches SET \(assignment)
                WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR tenant = CAST($2 AS TEXT)) AND state IN (\(states))
                """,
                [.text(id), .text(tenant?.text)] + values
            )
            guard let batch = try Self.batch(id, db), tenant == nil || batch.tenant == tenant else { return nil }
            guard changed > 0 else { return batch }
            switch change {
            case .pause:
                try Self.hold(id, db)
            case .resume:
                try Self.release(batch, from: batch.dueAt, db)
            case .cancel, .expire:
                // A slice that has begun is recorded when it ends.
                try db.execute(
                    "UPDATE batch_chunks SET state = $2 WHERE batch = $1 AND state IN ($3, $4)",
                    [.text(id), ChunkState.done.value, ChunkState.waiting.value, ChunkState.held.value]
                )
                let column = change == .expire ? "expired" : "cancelled"
                try db.execute(
                    """
                    UPDATE batches SET \(column) = \(column) + CAST((
                        SELECT coalesce(sum(pending), 0) FROM batch_chunks WHERE batch = $1 AND state = $2) AS BIGINT)
                    WHERE id = $1
                    """,
                    [.text(id), ChunkState.done.value]
                )
            }
            return try Self.batch(id, db)
        }
    }

    private static func hold(_ id: String, _ db: any SQLConnection) throws {
        try db.execute(
            "UPDATE batch_chunks SET state = $2 WHERE batch = $1 AND state = $3",
            [.text(id), ChunkState.held.value, ChunkState.waiting.value]
        )
    }

    /// Pauses every batch in a store that was restored or copied, or that a standby has taken over: the last marks may
    /// be missing.
    static func pauseAll(_ db: any SQLConnection) throws {
        let origins = try db.first("SELECT origin, gateway_origin() FROM store_epoch") { row in
            try [row.text(0), row.text(1)].map { $0.split(separator: "/") }
        }
        // A new store has no batch of an earlier life.
        guard let origins else { return }
        // A standby of PostgreSQL continues the same system with another timeline.
        let isFailover = origins.allSatisfy { $0.count == 3 } && origins[0][0] == origins[1][0]
        let reason: Batch.Reason = isFailover ? .failover : .restored
        let ids = try db.rows(
            "UPDATE batches SET state = 'paused', reason = $1 WHERE state IN ('queued', 'running') RETURNING id",
            [.string(reason.rawValue)]
        ) { try $0.text(0) }
        for id in ids { try Self.hold(id, db) }
    }

    package func batch(_ id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch? {
        try await self.database.read(scope: tenant.map { .tenant($0.text) } ?? .gateway) { db in
            try Self.batch(id, of: tenant, db)
        }
    }

    package func batches(_ filter: BatchFilter, limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows(
                """
                SELECT \(Self.columns) FROM batches
                WHERE \(filter.tenant == nil ? "CAST($1 AS TEXT) IS NULL" : "tenant = CAST($1 AS TEXT)")
                    AND is_message = \(filter.isMessage ? 1 : 0)
                    AND (CAST($2 AS TEXT) IS NULL OR state = CAST($2 AS TEXT))
                    AND (CAST($3 AS TEXT) IS NULL OR label = CAST($3 AS TEXT))
                    AND (CAST($4 AS BIGINT) IS NULL OR (created_at, id) < (CAST($4 AS BIGINT), CAST($5 AS TEXT)))
                ORDER BY created_at DESC, id DESC LIMIT $6
                """,
                [
                    .text(filter.tenant?.text), .text(filter.state?.rawValue), .text(filter.label),
                    .time(filter.after?.createdAt), .text(filter.after?.id), .int(limit),
                ],
                Batch.init
            )
        }
    }

    package func results(
        of id: String,
        of tenant: TenantID,
        from chunk: Int,
        limit: Int
    ) async throws(GatewayError) -> [(chunk: Int, pending: [UInt8], results: [UInt8])] {
        try await self.database.read(scope: .gateway) { db in
            try db.rows(
                """
                SELECT number, pending, results FROM batch_contents
                WHERE batch = $1 AND number >= $2 AND EXISTS (SELECT 1 FROM batches WHERE id = $1 AND tenant = $3)
                ORDER BY number LIMIT $4
                """,
                [.text(id), .int(chunk), .text(tenant), .int(limit)]
            ) { (chunk: try $0.int(0), pending: try $0.bytes(1), results: try $0.bytes(2)) }
        }
    }

    package func delete(_ id: String, of tenant: TenantID) async throws(GatewayError) -> Bool {
        try await self.write { db in
            try db.execute(
                "DELETE FROM batches WHERE id = $1 AND tenant = $2 AND finished_at IS NOT NULL AND \(Self.isIdle)",
                [.text(id), .text(tenant)]
            ) > 0
        }
    }

    private static func batch(_ id: String, of tenant: TenantID? = nil, _ db: any SQLConnection) throws -> Batch? {
        let batch = try db.first("SELECT \(Self.columns) FROM batches WHERE id = $1", [.text(id)], Batch.init)
        return tenant == nil || batch?.tenant == tenant ? batch : nil
    }

    /// True if no slice is under way, whose records would be left behind.
    private static let isIdle =
        "NOT EXISTS (SELECT 1 FROM batch_chunks WHERE batch = batches.id AND state IN (0, 1))"

    private static let noBatch = GatewayError(.notFound, "The tenant has no such batch")

    // MARK: For the runner

    package func due() async throws(GatewayError) -> (tenants: [TenantID], wait: Duration?) {
        try await self.database.read(scope: .gateway) { db in
            let rows = try db.rows("SELECT tenant, due_at - gateway_time() FROM batch_due ORDER BY due_at") { row in
                (tenant: try row.tenant(0), wait: Duration.microseconds(try row.int64(1)))
            }
            return (rows.filter { $0.wait <= .zero }.map(\.tenant), rows.first { $0.wait > .zero }?.wait)
        }
    }

    package func claim(of tenant: TenantID, chunks limit: Int, slice: Int) async throws(GatewayError) -> [Batch.Claim] {
        let skip = self.database.isShared ? "FOR UPDATE SKIP LOCKED" : ""
        let (owner, lease) = (self.owner, self.leases.duration)
        return try await self.write { db in
            // A standby that has taken over may lack the last marks: this pauses what it has.
            try StoreEpoch.confirm(db)
            var claims: [Batch.Claim] = []
            for priority in Batch.Priority.allCases where claims.count < limit {
                claims += try db.rows(
                    """
                    WITH now AS MATERIALIZED (SELECT gateway_time() AS t), next AS MATERIALIZED (
                        SELECT c.batch, c.number FROM batch_chunks AS c
                        WHERE c.tenant = $1 AND c.state = 0 AND c.priority = $2 AND c.due_at <= (SELECT t FROM now)
                        ORDER BY c.due_at, c.batch, c.number LIMIT $3 \(skip))
                    UPDATE batch_chunks SET state = 1, owner = $4, lease_until = (SELECT t FROM now) + $5
                    WHERE state = 0 AND (batch, number) IN (SELECT batch, number FROM next)
                    RETURNING batch, number, round, slice, retries, due_at, pending, max_slice, canary
                    """,
                    [
                        .text(tenant), .int(priority.rawValue), .int(limit - claims.count), .text(owner.text),
                        .microseconds(lease),
                    ]
                ) { row in
                    let fixed = try row.int(3)
                    let bounds = [try row.int(6), slice] + [try row.int(7), try row.int(8)].filter { $0 > 0 }
                    return Batch.Claim(
                        batch: try row.text(0),
                        chunk: try row.int(1),
                        round: try row.int(2),
                        slice: fixed > 0 ? fixed : bounds.min() ?? slice,
                        retries: try row.int(4),
                        dueAt: try row.time(5)
                    )
                }
            }
            try db.executeMany(
                "UPDATE batch_chunks SET slice = $3 WHERE batch = $1 AND number = $2 AND slice = 0",
                claims.map { [.text($0.batch), .int($0.chunk), .int($0.slice)] }
            )
            for id in Set(claims.map(\.batch)) {
                try db.execute(
                    """
                    UPDATE batches SET state = CASE WHEN state = 'queued' THEN 'running' ELSE state END,
                        started_at = gateway_time()
                    WHERE id = $1 AND started_at IS NULL
                    """,
                    [.text(id)]
                )
            }
            if claims.count < limit { try Self.noteNext(of: tenant, db) }
            return claims
        }
    }

    /// Corrects the time at which something of a tenant is due, after a claim has found less than it looked for.
    private static func noteNext(of tenant: TenantID, _ db: any SQLConnection) throws {
        // A transaction that adds chunks locks this row too: one of the two sees what the other has done.
        try db.execute("UPDATE batch_due SET due_at = due_at WHERE tenant = $1", [.text(tenant)])
        var next: Timestamp?
        for priority in Batch.Priority.allCases {
            let first = try db.first(
                """
                SELECT due_at FROM batch_chunks WHERE tenant = $1 AND state = 0 AND priority = $2
                ORDER BY due_at LIMIT 1
                """,
                [.text(tenant), .int(priority.rawValue)]
            ) { try $0.time(0) }
            if let first { next = min(next ?? first, first) }
        }
        if let next {
            try db.execute("UPDATE batch_due SET due_at = $2 WHERE tenant = $1", [.text(tenant), .time(next)])
        } else {
            try db.execute("DELETE FROM batch_due WHERE tenant = $1", [.text(tenant)])
        }
    }

    package func content(of claim: Batch.Claim) async throws(GatewayError) -> Batch.Content? {
        let owner = self.owner
        return try await self.database.read(scope: .gateway) { db in
            let sealed = try db.first(
                """
                SELECT batches.sealed, batch_contents.pending, batch_contents.results, batch_chunks.pending
                FROM batch_chunks
                JOIN batches ON batches.id = batch_chunks.batch
                JOIN batch_contents
                    ON batch_contents.batch = batch_chunks.batch AND batch_contents.number = batch_chunks.number
                WHERE batch_chunks.batch = $1 AND batch_chunks.number = $2 AND batch_chunks.round = $3
                    AND batch_chunks.owner = $4 AND batch_chunks.state = 1
                """,
                Self.key(of: claim, owner)
            ) { (message: try $0.bytes(0), pending: try $0.bytes(1), results: try $0.bytes(2), count: try $0.int(3)) }
            guard let sealed, let batch = try Self.batch(claim.batch, db) else { return nil }
            return Batch.Content(
                batch: batch,
                message: sealed.message,
                pending: sealed.pending,
                pendingCount: sealed.count,
                results: sealed.results
            )
        }
    }

    package func record(_ recording: Batch.Recording, of claim: Batch.Claim) async throws(GatewayError) -> Batch? {
        let owner = self.owner
        return try await self.write { db in
            let added = recording.added
            // The batch's row first: a pause or an end that runs beside this waits for it, or is seen below.
            try db.execute("UPDATE batches SET weight = weight WHERE id = $1", [.text(claim.batch)])
            guard let before = try Self.batch(claim.batch, db) else { return nil }
            let chunk = try db.first(
                "SELECT pending, canary FROM batch_chunks WHERE batch = $1 AND number = $2",
                [.text(claim.batch), .int(claim.chunk)]
            ) { (pending: try $0.int(0), canary: try $0.int(1)) }
            let canary = max(0, (chunk?.canary ?? 0) - (chunk?.pending ?? 0) + recording.pendingCount)
            let isCanary = before.options.canary != nil && !before.isCanaryOver
            let isEnding = before.state.isOver || recording.pendingCount == 0
            let isHeld = before.state == .paused || isCanary && canary == 0
            let next: ChunkState = isEnding ? .done : isHeld ? .held : .waiting
            let changed = try db.execute(
                """
                UPDATE batch_chunks SET state = $5, round = round + 1, slice = 0, pending = $6, due_at = $7,
                    canary = $9,
                    retries = CASE WHEN CAST($8 AS BIGINT) = 1 THEN retries + 1 ELSE 0 END
                WHERE batch = $1 AND number = $2 AND round = $3 AND owner = $4 AND state = 1
                """,
                Self.key(of: claim, owner) + [
                    next.value, .int(recording.pendingCount), .time(recording.dueAt), .bool(recording.isRetry),
                    .int(canary),
                ]
            )
            guard changed > 0 else { return nil }
            try db.execute(
                "UPDATE batch_contents SET pending = $3, results = $4 WHERE batch = $1 AND number = $2",
                [.text(claim.batch), .int(claim.chunk), .bytes(recording.pending), .bytes(recording.results)]
            )
            try db.execute(
                "DELETE FROM idempotency_records WHERE tenant = $1 AND route = 'batch' AND key = $2",
                [.text(before.tenant), .bytes(IdempotencyKey(of: claim).digest)]
            )
            // The recipients that are left in a batch that is over have the batch's own outcome.
            let left = before.state.isOver ? recording.pendingCount : 0
            try db.execute(
                """
                UPDATE batches SET accepted = accepted + $2, rejected = rejected + $3, unknown = unknown + $4,
                    expired = expired + $5, cancelled = cancelled + $6
                WHERE id = $1
                """,
                [
                    .text(claim.batch), .int(added.accepted), .int(added.rejected), .int(added.unknown),
                    .int(added.expired + (before.state == .expired ? left : 0)),
                    .int(added.cancelled + (before.state == .cancelled ? left : 0)),
                ]
            )
            try db.execute(
                """
                UPDATE batches SET state = 'finished', reason = NULL, finished_at = gateway_time()
                WHERE id = $1 AND finished_at IS NULL
                    AND total = accepted + rejected + unknown + expired + cancelled
                """,
                [.text(claim.batch)]
            )
            if next == .waiting { try Self.note(recording.dueAt, of: before.tenant, db) }
            if isCanary { try Self.judgeCanary(of: claim.batch, db) }
            return try Self.batch(claim.batch, db)
        }
    }

    /// Lets the other recipients of a batch follow once its canary's were sent to, or pauses it.
    private static func judgeCanary(of id: String, _ db: any SQLConnection) throws {
        guard var batch = try Self.batch(id, db), !batch.state.isOver, let canary = batch.options.canary else { return }
        let sent = batch.counts.accepted + batch.counts.rejected + batch.counts.unknown
        guard sent >= canary.recipients else { return }
        try db.execute("UPDATE batches SET canary_over = 1 WHERE id = $1", [.text(id)])
        batch.isCanaryOver = true
        if batch.counts.rejected * 100 > canary.maxRejectedPercent * sent {
            try db.execute("UPDATE batches SET state = 'paused', reason = 'canary' WHERE id = $1", [.text(id)])
            try Self.hold(id, db)
        } else if batch.state != .paused {
            let now = try db.first("SELECT gateway_time()") { try $0.time(0) } ?? batch.dueAt
            try Self.release(batch, from: now.advanced(by: .seconds(canary.holdSeconds)), db)
        }
    }

    package func putBack(_ claim: Batch.Claim, until time: Timestamp) async throws(GatewayError) {
        let owner = self.owner
        try await self.write { db in
            try db.execute("UPDATE batches SET weight = weight WHERE id = $1", [.text(claim.batch)])
            guard let batch = try Self.batch(claim.batch, db) else { return }
            let state: ChunkState = batch.state == .paused ? .held : .waiting
            let changed = try db.execute(
                """
                UPDATE batch_chunks SET state = $5, due_at = $6
                WHERE batch = $1 AND number = $2 AND round = $3 AND owner = $4 AND state = 1
                """,
                Self.key(of: claim, owner) + [state.value, .time(time)]
            )
            if changed > 0, state == .waiting { try Self.note(time, of: batch.tenant, db) }
        }
    }

    package func renew(_ claims: [Batch.Claim]) async throws(GatewayError) {
        let (owner, lease) = (self.owner, self.leases.duration)
        try await self.write { db in
            _ = try db.executeMany(
                """
                UPDATE batch_chunks SET lease_until = gateway_time() + $5
                WHERE batch = $1 AND number = $2 AND round = $3 AND owner = $4 AND state = 1
                """,
                claims.map { Self.key(of: $0, owner) + [.microseconds(lease)] }
            )
        }
    }

    package func returnAbandoned() async throws(GatewayError) -> Int {
        let grace = self.leases.attemptTimeout()
        // Another owner in a store of one process has ended.
        let isOver = self.database.isShared ? "lease_until + $1 <= (SELECT gateway_time())" : "owner <> $2"
        let owner = self.owner
        return try await self.write { db in
            let chunks = try db.rows(
                """
                UPDATE batch_chunks SET owner = '', state = CASE
                    WHEN (SELECT state FROM batches WHERE id = batch_chunks.batch) = 'paused' THEN 2 ELSE 0 END
                WHERE state = 1 AND CAST($1 AS BIGINT) IS NOT NULL AND CAST($2 AS TEXT) IS NOT NULL AND \(isOver)
                RETURNING tenant, due_at
                """,
                [.microseconds(grace), .text(owner.text)]
            ) { (tenant: try $0.tenant(0), time: try $0.time(1)) }
            for (tenant, time) in chunks { try Self.note(time, of: tenant, db) }
            return chunks.count
        }
    }

    package func takeFanOut(of tenant: TenantID, gap: Duration) async throws(GatewayError) -> Duration? {
        try await self.write { db in
            let taken = try db.execute(
                """
                INSERT INTO batch_fan_outs (tenant, next_at) VALUES ($1, (SELECT gateway_time()) + $2)
                ON CONFLICT (tenant) DO UPDATE SET next_at = excluded.next_at
                WHERE batch_fan_outs.next_at <= (SELECT gateway_time())
                """,
                [.text(tenant), .microseconds(gap)]
            )
            guard taken == 0 else { return nil }
            return try db.first(
                "SELECT next_at - gateway_time() FROM batch_fan_outs WHERE tenant = $1",
                [.text(tenant)]
            ) { .microseconds(max(0, try $0.int64(0))) }
        }
    }

    package func summary() async throws(GatewayError) -> BatchSummary {
        try await self.database.read(.scan, scope: .gateway) { db in
            let rows = try db.rows(
                """
                SELECT state, count(*), CAST(coalesce(sum(CASE WHEN finished_at IS NULL THEN
                    total - accepted - rejected - unknown - expired - cancelled ELSE 0 END), 0) AS BIGINT)
                FROM batches GROUP BY state
                """
            ) { row in
                (try row.parsed(0) { Batch.State(rawValue: $0) }, count: try row.int(1), waiting: try row.int(2))
            }
            let oldest = try db.first(
                "SELECT gateway_time() - min(due_at) FROM batch_due HAVING count(*) > 0"
            ) { Duration.microseconds(try $0.int64(0)) }
            return BatchSummary(
                batches: Dictionary(uniqueKeysWithValues: rows.map { ($0.0, $0.count) }),
                waiting: rows.reduce(0) { $0 + $1.waiting },
                oldestDue: oldest ?? .zero
            )
        }
    }

    package func overdue(limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows(
                """
                SELECT \(Self.columns) FROM batches
                WHERE finished_at IS NULL AND expires_at <= (SELECT gateway_time()) LIMIT $1
                """,
                [.int(limit)],
                Batch.init
            )
        }
    }

    package func purge(batches: Duration, messages: Duration, limit: Int) async throws(GatewayError) -> Int {
        try await self.write { db in
            try db.execute(
                """
                DELETE FROM batches WHERE id IN (
                    SELECT id FROM batches WHERE finished_at IS NOT NULL AND \(Self.isIdle)
                        AND finished_at <= (SELECT gateway_time()) - CASE WHEN is_message = 1
                            THEN CAST($2 AS BIGINT) ELSE CAST($1 AS BIGINT) END
                    LIMIT $3)
                """,
                [.microseconds(batches), .microseconds(messages), .int(limit)]
            )
        }
    }

    private static func key(of claim: Batch.Claim, _ owner: ReplicaID) -> [SQLValue] {
        [.text(claim.batch), .int(claim.chunk), .int(claim.round), .text(owner.text)]
    }
}

extension Batch {
    /// Reads the columns of ``SQLBatchStore`` in their order.
    fileprivate init(_ row: SQLRow) throws(DamagedValue) {
        self.init(
            id: try row.text(0),
            tenant: try row.tenant(1),
            kind: try row.parsed(24) { Target.Kind(rawValue: $0) },
            state: try row.parsed(2) { State(rawValue: $0) },
            label: try row.optionalText(4),
            keyID: try row.text(5),
            createdAt: try row.time(13),
            dueAt: try row.time(14),
            expiresAt: try row.time(15)
        )
        if !row.isNull(3) { self.reason = try row.parsed(3) { Reason(rawValue: $0) } }
        guard let priority = Priority(rawValue: try row.int(6)) else { throw row.damaged(6) }
        self.options.priority = priority
        if !row.isNull(7) { self.options.windowSeconds = try row.int(7) }
        self.options.resendsUnknown = try row.bool(8)
        self.options.keepsAccepted = try row.bool(9)
        if !row.isNull(10) {
            self.options.canary = Canary(
                recipients: try row.int(10),
                maxRejectedPercent: try row.int(11),
                holdSeconds: try row.int(12)
            )
        }
        (self.startedAt, self.finishedAt) = (try row.optionalTime(16), try row.optionalTime(17))
        self.counts.total = try row.int(18)
        self.counts.accepted = try row.int(19)
        self.counts.rejected = try row.int(20)
        self.counts.unknown = try row.int(21)
        self.counts.expired = try row.int(22)
        self.counts.cancelled = try row.int(23)
        self.isMessage = try row.bool(25)
        self.digest = try row.bytes(26)
        self.credential = try row.optionalText(27)
        self.isCanaryOver = try row.bool(28)
        self.options.isDryRun = try row.bool(29)
        self.options.lifetimeSeconds = try row.int(30)
        self.creatorID = try row.text(31)
    }
}
