package import FCMModel
package import GatewayCore

/// Batches in a database that replicas may share.
///
/// A transaction that changes a batch and its chunks locks the batch's row first. Two of them then wait for each other
/// instead of deadlocking, and the later one sees the state that the earlier one has set.
package struct SQLBatchStore: BatchStore {
    private let database: any SQLDatabase
    private let bounds: BatchBounds
    private let owner: ReplicaID
    /// A process that has its store to itself needs none, but the store knows only chunks with a lease.
    private let leases: LeaseTerms

    package init(
        database: any SQLDatabase,
        bounds: BatchBounds = BatchBounds(),
        owner: ReplicaID,
        leases: LeaseTerms
    ) {
        (self.database, self.bounds, self.owner, self.leases) = (database, bounds, owner, leases)
    }

    private func write<T: Sendable>(
        _ body: @escaping @Sendable (BatchTables) throws -> T
    ) async throws(GatewayError) -> T {
        let (isShared, owner, bounds) = (self.database.isShared, self.owner, self.bounds)
        return try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try body(BatchTables(db: db, isShared: isShared, owner: owner, bounds: bounds))
        }
    }

    package func apply(_ changes: [BatchWrite]) async throws(GatewayError) -> [BatchWrite.Outcome] {
        do throws(GatewayError) {
            return try await self.write { try $0.apply(changes) }
        } catch {
            // A repeated change recognises what the first attempt has stored.
            guard error.leavesOutcomeUnknown else { throw error }
            return try await self.write { try $0.apply(changes) }
        }
    }

    // MARK: For callers

    package func add(
        part number: Int,
        kind: Target.Kind,
        digest: [UInt8],
        chunks: [Batch.Chunk],
        to id: String,
        of tenant: TenantID
    ) async throws(GatewayError) {
        try await self.write { tables in
            // A start waits for this part, or this part sees the start.
            guard var batch = try tables.lockedBatch(id, of: tenant) else { throw Self.noBatch }
            let known = try tables.db.first(
                "SELECT digest FROM batch_parts WHERE batch = $1 AND part = $2",
                [.text(id), .int(number)]
            ) { try $0.bytes(0) }
            if let known {
                guard known == digest else {
                    throw GatewayError(.conflict, "The part was uploaded with another content")
                }
                return
            }
            guard batch.state == .open else {
                throw GatewayError(.preconditionFailed, "The batch is not open any more")
            }
            if batch.counts.total == 0 { batch.kind = kind }
            guard batch.kind == kind else {
                throw GatewayError(.preconditionFailed, "Its other parts list \(batch.kind.rawValue)")
            }
            let recipients = chunks.reduce(0) { $0 + $1.count }
            try tables.db.execute(
                "INSERT INTO batch_parts (batch, part, digest, recipients) VALUES ($1, $2, $3, $4)",
                [.text(id), .int(number), .bytes(digest), .int(recipients)]
            )
            var usage = try tables.usage(of: [batch])
            let weight = chunks.weight
            switch try tables.admit(batch, recipients: recipients, weight: weight, &usage) {
            case .tenantFull: throw GatewayError(.invalid, self.bounds.refusal(isMessage: false))
            case .storeFull: throw GatewayError(.overloaded, BatchBounds.storeRefusal)
            default: break
            }
            try tables.insert([(batch, number, chunks)])
            batch.counts.total += recipients
            try tables.save([batch])
            try tables.db.execute(
                "UPDATE batches SET kind = $2, weight = weight + $3 WHERE id = $1",
                [.text(id), .string(kind.rawValue), .int(weight)]
            )
            try tables.store(usage)
        }
    }

    package func apply(
        _ change: BatchChange,
        to id: String,
        of tenant: TenantID?
    ) async throws(GatewayError) -> Batch? {
        try await self.write { tables in
            guard var batch = try tables.lockedBatch(id, of: tenant) else { return nil }
            if case .start(let parts, _, _) = change, try tables.partCount(of: id) != parts { return batch }
            guard batch.apply(change, at: try tables.time()) else { return batch }
            try tables.moveChunks(of: &batch, after: change)
            try tables.save([batch])
            return batch
        }
    }

    package func batch(_ id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch? {
        try await self.database.read(scope: tenant.map { .tenant($0.text) } ?? .gateway) { db in
            try BatchTables.batch(id, of: tenant, db)
        }
    }

    package func waitingUntil(_ id: String) async throws(GatewayError) -> Timestamp? {
        try await self.database.read(scope: .gateway) { db in
            try db.first(
                "SELECT min(due_at) FROM batch_chunks WHERE batch = $1 AND state = 0 HAVING min(due_at) > gateway_time()",
                [.text(id)]
            ) { try $0.time(0) }
        }
    }

    package func batches(_ filter: BatchFilter, limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.database.read(.listing, scope: filter.tenant.map { .tenant($0.text) } ?? .gateway) { db in
            try db.rows(
                """
                SELECT \(Batch.columns) FROM batches
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

    package func paused(for reasons: Set<Batch.Reason>, limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.database.read(.scan, scope: .gateway) { db in
            let batches = try db.rows(
                "SELECT \(Batch.columns) FROM batches WHERE state = 'paused' ORDER BY created_at LIMIT $1",
                [.int(limit)],
                Batch.init
            )
            return batches.filter { $0.reason.map(reasons.contains) ?? false }
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
        try await self.write { tables in
            var usages = BatchTables.Usages()
            let count = try tables.delete("id = $1 AND tenant = $2", [.text(id), .text(tenant)], limit: 1, &usages)
            try tables.store(usages)
            return count > 0
        }
    }

    /// A pause that would last longer was stored before the clock was set back.
    private static let longestPause = Duration.seconds(3_600)
    private static let noBatch = GatewayError(.notFound, "The tenant has no such batch")

    // MARK: For the runner

    package func due() async throws(GatewayError) -> BatchesDue {
        let isShared = self.database.isShared
        return try await self.database.read(scope: .gateway) { db in
            var due = BatchesDue(at: try BatchTables.time(db))
            due.pauses = try db.rows(
                """
                SELECT project, until - gateway_time(), factor FROM project_pauses
                WHERE until > (SELECT gateway_time()) AND until <= (SELECT gateway_time()) + $1
                """,
                [.microseconds(Self.longestPause)]
            ) { ProjectPause(project: try $0.text(0), rest: .microseconds(try $0.int64(1)), permille: try $0.int(2)) }
            // An earlier release would drop the records of slices.
            if isShared, try SQLReplicaStore.hasEarlier(than: SQLSchema.batchVersion, db) { return due }
            for (tenant, wait) in try BatchTables.firstDue(db) {
                if wait <= .zero { due.tenants.append(tenant) } else { due.wait = min(due.wait ?? wait, wait) }
            }
            return due
        }
    }

    package func claim(
        of tenant: TenantID,
        chunks limit: Int,
        slice: Int,
        recipients: Int
    ) async throws(GatewayError) -> [Batch.Slice] {
        let lease = self.leases.duration
        return try await self.write { tables in
            // A standby that has taken over may lack the last marks: this pauses what it has.
            try StoreEpoch.confirm(tables.db)
            return try tables.claim(of: tenant, chunks: limit, slice: slice, recipients: recipients, lease: lease)
        }
    }

    package func renew(_ claims: [Batch.Claim]) async throws(GatewayError) {
        let lease = self.leases.duration
        try await self.write { tables in
            _ = try tables.db.executeMany(
                """
                UPDATE batch_chunks SET lease_until = gateway_time() + $5
                WHERE batch = $1 AND number = $2 AND round = $3 AND owner = $4 AND state = 1
                """,
                // One order for all, so that transactions don't deadlock.
                claims.sorted { ($0.batch, $0.chunk) < ($1.batch, $1.chunk) }
                    .map { tables.key(of: $0) + [.microseconds(lease)] }
            )
        }
    }

    package func returnAbandoned() async throws(GatewayError) -> Int {
        let grace = self.leases.attemptTimeout()
        return try await self.write { tables in
            // No retry waits for so long: the clock was set back since.
            try tables.db.execute(
                """
                UPDATE batch_chunks SET due_at = gateway_time()
                WHERE state = 0 AND max_slice = 0 AND (round > 0 OR slice > 0)
                    AND due_at > (SELECT gateway_time()) + $1
                    AND NOT EXISTS (SELECT 1 FROM batches WHERE id = batch_chunks.batch AND canary_over = 1)
                """,
                [.microseconds(SliceSettlement.longestRetry)]
            )
            // Another owner in a store of one process has ended.
            let isOver = tables.isShared ? "lease_until + $1 <= (SELECT gateway_time())" : "owner <> $2"
            // A chunk of a paused batch is claimed once more, and then held back.
            return try tables.db.execute(
                """
                UPDATE batch_chunks SET owner = '', state = 0
                WHERE state = 1 AND CAST($1 AS BIGINT) IS NOT NULL AND CAST($2 AS TEXT) IS NOT NULL AND \(isOver)
                """,
                [.microseconds(grace), .text(tables.owner.text)]
            )
        }
    }

    package func takeFanOut(of tenant: TenantID, gap: Duration) async throws(GatewayError) -> Duration? {
        try await self.write { tables in
            let taken = try tables.db.execute(
                """
                INSERT INTO batch_fan_outs (tenant, next_at) VALUES ($1, (SELECT gateway_time()) + $2)
                ON CONFLICT (tenant) DO UPDATE SET next_at = excluded.next_at
                WHERE batch_fan_outs.next_at <= (SELECT gateway_time())
                    OR batch_fan_outs.next_at > (SELECT gateway_time()) + $2
                """,
                [.text(tenant), .microseconds(gap)]
            )
            guard taken == 0 else { return nil }
            return try tables.db.first(
                "SELECT next_at - gateway_time() FROM batch_fan_outs WHERE tenant = $1",
                [.text(tenant)]
            ) { .microseconds(max(0, try $0.int64(0))) }
        }
    }

    package func add(_ pause: ProjectPause) async throws(GatewayError) {
        try await self.write { tables in
            try tables.db.execute(
                """
                INSERT INTO project_pauses (project, until, factor) VALUES ($1, gateway_time() + $2, $3)
                ON CONFLICT (project) DO UPDATE SET until = excluded.until, factor = excluded.factor
                WHERE project_pauses.until < excluded.until
                """,
                [.string(pause.project), .microseconds(pause.rest), .int(pause.permille)]
            )
            _ = try tables.db.exists("SELECT gateway_notify()")
        }
    }

    package func summary() async throws(GatewayError) -> BatchSummary {
        try await self.database.read(.scan, scope: .gateway) { db in
            let rows = try db.rows(
                """
                SELECT state, count(*), CAST(coalesce(sum(CASE WHEN finished_at IS NULL THEN
                    total - accepted - rejected - unknown - expired - cancelled ELSE 0 END), 0) AS BIGINT)
                FROM batches WHERE is_message = 0 GROUP BY state
                """
            ) { row in
                (try row.parsed(0) { Batch.State(rawValue: $0) }, count: try row.int(1), waiting: try row.int(2))
            }
            let messages = try db.first(
                "SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM batch_usage"
            ) { try $0.int(0) }
            return BatchSummary(
                batches: Dictionary(uniqueKeysWithValues: rows.map { ($0.0, $0.count) }),
                waiting: rows.reduce(messages ?? 0) { $0 + $1.waiting },
                oldestDue: .zero - (try BatchTables.firstDue(db).map(\.wait).min() ?? .zero)
            )
        }
    }

    package func overdue(limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows(
                """
                SELECT \(Batch.columns) FROM batches
                WHERE finished_at IS NULL AND expires_at <= (SELECT gateway_time()) LIMIT $1
                """,
                [.int(limit)],
                Batch.init
            )
        }
    }

    package func purge(limit: Int) async throws(GatewayError) -> Int {
        try await self.write { tables in
            try tables.db.execute(
                "DELETE FROM project_pauses WHERE abs(until - (SELECT gateway_time())) > $1",
                [.microseconds(Self.longestPause)]
            )
            var usages = BatchTables.Usages()
            let count = try tables.delete("delete_at <= (SELECT gateway_time())", [], limit: limit, &usages)
            try tables.store(usages)
            return count
        }
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
        let isFailover =
            origins.allSatisfy { $0.count == 3 } && origins[0][0] == origins[1][0] && origins[0] != origins[1]
        let reason: Batch.Reason = isFailover ? .failover : .restored
        let ids = try db.rows(
            "UPDATE batches SET state = 'paused', reason = $1 WHERE state IN ('queued', 'running') RETURNING id",
            [.string(reason.rawValue)]
        ) { try $0.text(0) }
        try db.executeMany(BatchTables.hold, ids.map { [.text($0)] })
    }
}
