package import GatewayCore

/// Outcomes of sends with an idempotency key.
///
/// Replicas that share a store hold each open record under a ``Lease``. Every change of a record carries that
/// condition, so that transactions need no lock but the row's. The price is that the store's bounds are kept only
/// approximately.
package struct SQLIdempotencyStore: IdempotencyStore {
    /// The owner of open records, and the terms of its leases.
    fileprivate struct RecordOwner: Sendable {
        let id: String
        /// `nil` for a process that has the store to itself.
        let leases: LeaseTerms?
        /// True if no other process uses the database.
        let isAlone: Bool

        /// True if an open record belongs to another replica, whose lease or last call may last. `rest` is the lease's
        /// remainder.
        func leaves(to owner: String, withTimeLeft rest: Duration) -> Bool {
            guard let leases = self.leases, owner != self.id else { return false }
            return rest + leases.attemptTimeout() > .zero
        }

        var duration: SQLValue { .microseconds(self.leases?.duration ?? .zero) }
        /// A duration after which another replica may take the record over at once.
        var ended: SQLValue { .microseconds(.zero - (self.leases?.attemptTimeout() ?? .zero)) }
    }

    private let database: any SQLDatabase
    private let bounds: IdempotencyBounds
    private let owner: RecordOwner

    /// A store for one replica, whose leases show others its open records. A process without replicas has no terms.
    package init(
        database: any SQLDatabase,
        bounds: IdempotencyBounds = IdempotencyBounds(),
        owner: ReplicaID = ReplicaID(text: ""),
        leases: LeaseTerms? = nil
    ) {
        self.database = database
        self.bounds = bounds
        self.owner = RecordOwner(id: owner.text, leases: leases, isAlone: !database.isShared)
    }

    private var isolation: SQLIsolation { self.owner.leases == nil ? .serializable : .readCommitted }

    package func records(of identities: [IdempotencyRecord.Identity]) async throws(GatewayError) -> [IdempotencyRecord
        .Found]
    {
        try await self.database.read(scope: .gateway) { db in
            var found = Array(repeating: IdempotencyRecord.Found.success(nil), count: identities.count)
            try db.queryMany(
                """
                SELECT records.id, fingerprint, message_id, records.created_at, expires_at, is_finished, content,
                    owner, lease_until - gateway_time()
                FROM idempotency_records AS records JOIN tenants ON tenants.id = records.tenant
                WHERE records.tenant = $1 AND tenants.created_at = $2 AND route = $3 AND key = $4
                """,
                identities.map { identity in
                    [
                        .text(identity.tenant), .time(identity.tenantCreatedAt), .text(identity.route.rawValue),
                        .bytes(identity.keyDigest),
                    ]
                }
            ) { index, row in
                found[index] = Result { try self.stored(row) }.mapError(GatewayError.init(translating:))
            }
            return found
        }
    }

    private func stored(_ row: SQLRow) throws -> IdempotencyRecord.Stored {
        let (isFinished, content) = (try row.bool(5), try row.bytes(6))
        return IdempotencyRecord.Stored(
            id: try row.int64(0),
            record: IdempotencyRecord(
                fingerprint: try row.bytes(1),
                messageID: try row.text(2),
                createdAt: try row.time(3),
                expiresAt: try row.time(4),
                state: isFinished ? .finished(answer: content) : .open(progress: content)
            ),
            isHeldElsewhere: try !isFinished
                && self.owner.leaves(to: row.text(7), withTimeLeft: .microseconds(row.int64(8)))
        )
    }

    package func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        do throws(GatewayError) {
            return try await self.write(changes)
        } catch {
            // A repeated change recognises what the first attempt has stored.
            guard error.leavesOutcomeUnknown else { throw error }
            return try await self.write(changes)
        }
    }

    private func write(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        let (bounds, owner) = (self.bounds, self.owner)
        return try await self.database.write(scope: .gateway, isolation: self.isolation) { db in
            var writer = IdempotencyWriter(db: db, bounds: bounds, owner: owner)
            let outcomes = try writer.apply(changes)
            try writer.finish()
            return outcomes
        }
    }

    package func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        let (bounds, owner) = (self.bounds, self.owner)
        return try await self.database.write(scope: .gateway, isolation: self.isolation) { db in
            try db.execute(
                """
                INSERT INTO idempotency_mark (id, time, wall) VALUES (1, $1, $2)
                ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall
                """,
                [.time(mark.time), .time(mark.wall)]
            )
            var writer = IdempotencyWriter(db: db, bounds: bounds, owner: owner)
            let count = try writer.remove(
                "id IN (SELECT id FROM idempotency_records WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
                [.time(mark.time), .int(limit)]
            )
            try writer.finish()
            return count
        }
    }

    package func mark() async throws(GatewayError) -> IdempotencyMark? {
        try await self.database.read(scope: .gateway) { db in
            try db.first("SELECT time, wall FROM idempotency_mark") { row in
                IdempotencyMark(time: try row.time(0), wall: try row.time(1))
            }
        }
    }
}

/// Changes records within a transaction, and updates the totals of each tenant.
private struct IdempotencyWriter {
    /// Records evicted at once for room, so that a full store is not searched at each send.
    private static let evictionsAtOnce = 32

    private struct Usage {
        var records = 0
        var weight = 0

        init() {}

        /// Reads a column and the next one.
        init(_ row: SQLRow, _ column: Int) throws {
            (self.records, self.weight) = (try row.int(column), try row.int(column + 1))
        }

        mutating func add(_ records: Int, _ weight: Int) {
            self.records += records
            self.weight += weight
        }
    }

    private struct Reservation {
        let identity: IdempotencyRecord.Identity
        let record: IdempotencyRecord

        init(_ identity: IdempotencyRecord.Identity, _ record: IdempotencyRecord) {
            (self.identity, self.record) = (identity, record)
        }

        var tenant: TenantID { self.identity.tenant }
        /// The bytes that count towards the store's bounds. Records of batches are not counted.
        var weight: Int { self.isCounted ? self.record.state.weight : 0 }
        var isCounted: Bool { self.identity.route != .batch }

        var key: [SQLValue] {
            [.text(self.tenant), .text(self.identity.route.rawValue), .bytes(self.identity.keyDigest)]
        }
    }

    private struct Update {
        let id: Int64
        let state: IdempotencyRecord.State
        let endsLease: Bool
    }

    private let db: any SQLConnection
    private let bounds: IdempotencyBounds
    private let owner: SQLIdempotencyStore.RecordOwner
    /// The totals of the tenants of a batch's reservations.
    private var usage: [String: Usage] = [:]
    /// The sum of all tenants' totals, read only for reservations.
    private var total = Usage()
    /// The changes to each tenant's totals in this transaction. Other transactions may change the same rows.
    private var added: [String: Usage] = [:]

    init(db: any SQLConnection, bounds: IdempotencyBounds, owner: SQLIdempotencyStore.RecordOwner) {
        (self.db, self.bounds, self.owner) = (db, bounds, owner)
    }

    /// Reads the store's total and those of some tenants, before the transaction changes anything.
    private mutating func readUsage(of tenants: Set<String>) throws {
        guard !tenants.isEmpty else { return }
        let sums = "CAST(coalesce(sum(records), 0) AS BIGINT), CAST(coalesce(sum(weight), 0) AS BIGINT)"
        self.total = try self.db.first("SELECT \(sums) FROM idempotency_usage") { try Usage($0, 0) } ?? Usage()
        let names = tenants.sorted()
        try self.db.queryMany(
            "SELECT records, weight FROM idempotency_usage WHERE tenant = $1",
            names.map { [.text($0)] }
        ) { place, row in self.usage[names[place]] = try Usage(row, 0) }
    }

    /// Applies a batch. Its changes are simultaneous, so their order is free: changes that make room run first.
    ///
    /// Reservations and updates, one of each per send, are all sent before the first answer is awaited.
    mutating func apply(_ changes: [IdempotencyChange]) throws -> [IdempotencyChange.Outcome] {
        var outcomes: [Int: IdempotencyChange.Outcome] = [:]
        var (reservations, updates): ([(Int, Reservation)], [(Int, Update)]) = ([], [])
        let tenants = changes.compactMap { change -> String? in
            if case .reserve(let identity, _) = change { identity.tenant.text } else { nil }
        }
        try self.readUsage(of: Set(tenants))
        for (place, change) in changes.enumerated() {
            switch change {
            case .reserve(let identity, let record): reservations.append((place, Reservation(identity, record)))
            case .update(let id, let state, let endsLease):
                updates.append((place, Update(id: id, state: state, endsLease: endsLease)))
            case .renew(let id): outcomes[place] = try self.renew(id)
            case .takeOver(let id, let progress): outcomes[place] = try self.takeOver(id, progress)
            case .release(let id): outcomes[place] = try self.release(id)
            }
        }
        for ((place, _), outcome) in zip(updates, try self.update(updates.map(\.1))) { outcomes[place] = outcome }
        for ((place, _), outcome) in zip(reservations, try self.reserve(reservations.map(\.1))) {
            outcomes[place] = outcome
        }
        return changes.indices.compactMap { outcomes[$0] }
    }

    private mutating func release(_ id: Int64) throws -> IdempotencyChange.Outcome {
        guard self.owner.leases != nil else {
            _ = try self.remove("id = $1", [.int(id)])
            return .done
        }
        return try self.remove("id = $1 AND owner = $2", [.int(id), .text(self.owner.id)]) > 0 ? .done : .lost
    }

    private func renew(_ id: Int64) throws -> IdempotencyChange.Outcome {
        let changes = try self.db.execute(
            """
            UPDATE idempotency_records SET lease_until = gateway_time() + $3
            WHERE id = $1 AND owner = $2 AND is_finished = 0
            """,
            [.int(id), .text(self.owner.id), self.owner.duration]
        )
        return changes > 0 ? .done : .lost
    }

    private func takeOver(_ id: Int64, _ progress: [UInt8]) throws -> IdempotencyChange.Outcome {
        let grace = self.owner.leases?.attemptTimeout() ?? .zero
        let changes = try self.db.execute(
            """
            UPDATE idempotency_records SET owner = $2, lease_until = gateway_time() + $3
            WHERE id = $1 AND is_finished = 0 AND content = $5
                AND (owner = $2 OR lease_until + $4 <= gateway_time())
            """,
            [.int(id), .text(self.owner.id), self.owner.duration, .microseconds(grace), .bytes(progress)]
        )
        return changes > 0 ? .done : .lost
    }

    func finish() throws {
        try self.db.executeMany(
            """
            INSERT INTO idempotency_usage (tenant, records, weight) VALUES ($1, $2, $3)
            ON CONFLICT (tenant) DO UPDATE SET
                records = idempotency_usage.records + excluded.records,
                weight = idempotency_usage.weight + excluded.weight
            """,
            // One order for all, so that transactions don't deadlock.
            self.added.sorted { $0.key < $1.key }
                .map { tenant, usage in [.text(tenant), .int(usage.records), .int(usage.weight)] }
        )
    }

    private mutating func count(_ tenant: String, records: Int, weight: Int) {
        self.usage[tenant, default: Usage()].add(records, weight)
        self.total.add(records, weight)
        self.added[tenant, default: Usage()].add(records, weight)
    }

    /// Removes records that meet a condition. Returns their number.
    mutating func remove(_ condition: String, _ values: [SQLValue]) throws -> Int {
        let removed = try self.db.rows(
            "DELETE FROM idempotency_records WHERE \(condition) RETURNING tenant, weight",
            values
        ) { (tenant: try $0.text(0), weight: try $0.int(1)) }
        // A record of a batch has no weight, and was not counted.
        for record in removed where record.weight > 0 {
            self.count(record.tenant, records: -1, weight: -record.weight)
        }
        return removed.count
    }

    /// Reserves keys with one statement each. Looks for the reason only if that fails.
    private mutating func reserve(_ reservations: [Reservation]) throws -> [IdempotencyChange.Outcome] {
        guard !reservations.isEmpty else { return [] }
        var evicted = 0
        if !self.hasRoom(for: reservations) {
            guard reservations.count == 1 else { return try reservations.flatMap { try self.reserve([$0]) } }
            guard let count = try self.makeRoom(for: reservations[0].tenant) else { return [.full] }
            evicted = count
        }
        var ids = try self.insert(reservations)
        return try reservations.indices.map { place in
            let reservation = reservations[place]
            if ids[place] == nil,
                try self.remove(Self.expired, reservation.key + [.time(reservation.record.createdAt)]) > 0
            {
                ids[place] = try self.insert([reservation])[0]
            }
            guard let id = ids[place] else { return try self.refusal(of: reservation, evicted) }
            if reservation.isCounted { self.count(reservation.tenant.text, records: 1, weight: reservation.weight) }
            return .reserved(id: id, evicted: evicted)
        }
    }

    private static let expired = "tenant = $1 AND route = $2 AND key = $3 AND expires_at <= $4"

    /// Inserts records whose tenants exist and whose keys are free. Returns their numbers, nil for the others.
    private func insert(_ reservations: [Reservation]) throws -> [Int64?] {
        var ids = [Int64?](repeating: nil, count: reservations.count)
        try self.db.queryMany(
            """
            INSERT INTO idempotency_records
                (tenant, route, key, fingerprint, message_id, created_at, expires_at, is_finished, owner,
                lease_until, weight, content)
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $11, gateway_time() + $12, $9, $10
            FROM tenants WHERE tenants.id = $1 AND tenants.created_at = $13
                AND (CAST($14 AS TEXT) IS NULL OR EXISTS (
                    SELECT 1 FROM batch_chunks WHERE batch = CAST($14 AS TEXT) AND number = $15 AND round = $16
                        AND owner = $11 AND state = 1 \(self.owner.isAlone ? "" : "FOR SHARE")))
            ON CONFLICT (tenant, route, key) DO NOTHING
            RETURNING id
            """,
            reservations.map { reservation in
                let record = reservation.record
                return reservation.key + [
                    .bytes(record.fingerprint), .text(record.messageID), .time(record.createdAt),
                    .time(record.expiresAt), record.state.columns.isFinished, .int(reservation.weight),
                    record.state.columns.content, .text(self.owner.id), self.owner.duration,
                    .time(reservation.identity.tenantCreatedAt), .text(reservation.identity.slice?.batch),
                    .int(reservation.identity.slice?.chunk), .int(reservation.identity.slice?.round),
                ]
            }
        ) { place, row in ids[place] = try row.int64(0) }
        return ids
    }

    /// Returns why a record could not be inserted.
    private func refusal(of reservation: Reservation, _ evicted: Int) throws -> IdempotencyChange.Outcome {
        let (identity, record) = (reservation.identity, reservation.record)
        guard try self.db.hasTenant(identity.tenant, createdAt: identity.tenantCreatedAt) else { return .tenantGone }
        // A repeated reservation finds its own record: the sealed content occurs in no other.
        let own = try self.db.first(
            """
            SELECT id FROM idempotency_records
            WHERE tenant = $1 AND route = $2 AND key = $3 AND owner = $4 AND is_finished = $5 AND content = $6
                AND message_id = $7
            """,
            reservation.key + [
                .text(self.owner.id), record.state.columns.isFinished, record.state.columns.content,
                .text(record.messageID),
            ]
        ) { try $0.int64(0) }
        return own.map { .reserved(id: $0, evicted: evicted) } ?? .taken
    }

    private mutating func update(_ updates: [Update]) throws -> [IdempotencyChange.Outcome] {
        guard !updates.isEmpty else { return [] }
        var old: [Int64: (tenant: String, weight: Int)] = [:]
        try self.db.queryMany(
            "SELECT tenant, weight FROM idempotency_records WHERE id = $1",
            updates.map { [.int($0.id)] }
        ) { place, row in old[updates[place].id] = (try row.text(0), try row.int(1)) }
        let isAlone = self.owner.leases == nil
        // A send's outcome is stored even if its lease has just expired, unless another replica took it over.
        let condition = isAlone ? "" : "AND owner = $6 AND (lease_until > gateway_time() OR CAST($2 AS BIGINT) = 1)"
        let owner: [SQLValue] = isAlone ? [] : [.text(self.owner.id)]
        var changed: Set<Int> = []
        try self.db.queryMany(
            """
            UPDATE idempotency_records SET
                is_finished = $2, weight = CASE WHEN weight > 0 THEN $3 ELSE 0 END, content = $4, lease_until = gateway_time() + $5
            WHERE id = $1 \(condition)
            RETURNING id
            """,
            updates.map { update in
                let (isFinished, content) = update.state.columns
                let lease = update.endsLease ? self.owner.ended : self.owner.duration
                return [.int(update.id), isFinished, .int(update.state.weight), content, lease] + owner
            }
        ) { place, _ in changed.insert(place) }
        return updates.indices.map { place in
            let update = updates[place]
            // A missing record was evicted; no lease was lost.
            guard let was = old[update.id], changed.contains(place) else {
                return isAlone && old[update.id] == nil ? .done : .lost
            }
            let weight = was.weight > 0 ? update.state.weight : 0
            if weight != was.weight { self.count(was.tenant, records: 0, weight: weight - was.weight) }
            old[update.id] = (was.tenant, weight)
            return .done
        }
    }

    /// True if the records fit without evictions.
    private func hasRoom(for reservations: [Reservation]) -> Bool {
        var (added, all): ([String: Usage], Usage) = ([:], self.total)
        for reservation in reservations where reservation.isCounted {
            added[reservation.tenant.text, default: Usage()].add(1, reservation.weight)
            all.add(1, reservation.weight)
        }
        guard !added.isEmpty else { return true }
        return all.records <= self.bounds.maxRecords && all.weight <= self.bounds.maxBytes
            && added.allSatisfy { tenant, more in
                let own = self.usage[tenant] ?? Usage()
                return own.records + more.records <= self.bounds.maxRecordsPerTenant
                    && own.weight + more.weight <= self.bounds.maxBytesPerTenant
            }
    }

    /// Makes room for one more record of a tenant. Returns the number of finished records evicted, or `nil` if there is
    /// no room.
    private mutating func makeRoom(for tenant: TenantID) throws -> Int? {
        var evicted = 0
        while let crowded = try self.crowdedTenant(tenant) {
            // Another replica may evict the same records at the same time. Then this one evicts the next.
            var count = try self.evict(from: crowded)
            if count == 0 { count = try self.evict(from: crowded) }
            guard count > 0 else { return nil }
            evicted += count
        }
        return evicted
    }

    private mutating func evict(from tenant: String) throws -> Int {
        try self.remove(
            """
            id IN (
                SELECT id FROM idempotency_records WHERE tenant = $1 AND is_finished = 1 AND weight > 0
                ORDER BY id LIMIT $2
            )
            """,
            [.text(tenant), .int(Self.evictionsAtOnce)]
        )
    }

    /// The tenant that must give up records before a tenant gets one more: itself, or the one with the most.
    private func crowdedTenant(_ tenant: TenantID) throws -> String? {
        let own = self.usage[tenant.text] ?? Usage()
        if own.records >= self.bounds.maxRecordsPerTenant || own.weight >= self.bounds.maxBytesPerTenant {
            return tenant.text
        }
        guard self.total.records >= self.bounds.maxRecords || self.total.weight >= self.bounds.maxBytes else {
            return nil
        }
        var usage: [String: Usage] = [:]
        try self.db.query("SELECT tenant, records, weight FROM idempotency_usage", []) { row in
            usage[try row.text(0)] = try Usage(row, 1)
            return true
        }
        for (tenant, more) in self.added { usage[tenant, default: Usage()].add(more.records, more.weight) }
        let byWeight = usage.filter { $0.value.records > 0 }.sorted { $0.value.weight > $1.value.weight }
        let largest = try byWeight.first { candidate in
            try self.db.exists(
                "SELECT 1 FROM idempotency_records WHERE tenant = $1 AND is_finished = 1 AND weight > 0 LIMIT 1",
                [.text(candidate.key)]
            )
        }
        return largest?.key ?? tenant.text
    }
}

extension IdempotencyRecord.State {
    /// The values of the columns `is_finished` and `content`.
    fileprivate var columns: (isFinished: SQLValue, content: SQLValue) {
        switch self {
        case .open(let progress): (.bool(false), .bytes(progress))
        case .finished(let answer): (.bool(true), .bytes(answer))
        }
    }
}
