package import GatewayCore

/// The audit's chains with their sealed heads, and its signatures. ``AuditPager`` finds pages.
package struct SQLAuditStore: AuditStore, AuditPageReader {
    private static let insertion = SQLInsertion(
        into: "audit_records",
        ["writer", "sequence", "time", "tenant", "tenant_uid", "body", "hash"],
        "ON CONFLICT (writer, sequence) DO NOTHING"
    )

    let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try Self.append(records, head: head, db)
        }
    }

    /// The same within the caller's transaction.
    static func append(_ records: [ChainedAuditRecord], head: AuditHead, _ db: any SQLConnection) throws {
        let rows = records.map { record -> [SQLValue] in
            [
                .int(record.writer), .int(record.sequence), .time(record.entry.time), .text(record.entry.tenant),
                .uid(record.entry.tenantUID), .blob(record.entry.body), .blob(record.hash),
            ]
        }
        let added = try db.insert(rows, by: Self.insertion)
        // A repeated commit finds its own records. Any other record at their positions is another writer's. Continuing
        // would break the chain without a trace.
        if added < records.count {
            for record in records {
                try self.require(
                    record.hash,
                    at: AuditChain.Position(writer: record.writer, sequence: record.sequence),
                    db
                )
            }
        }
        // A repeated commit must not move the head back either.
        try db.execute(
            """
            INSERT INTO audit_heads (writer, sequence, hash, state, seal) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (writer) DO UPDATE SET
                sequence = excluded.sequence, hash = excluded.hash, state = excluded.state, seal = excluded.seal
            WHERE excluded.sequence >= audit_heads.sequence
            """,
            [.int(head.writer), .int(head.sequence), .blob(head.hash), .text(head.state.rawValue), .blob(head.seal)]
        )
    }

    /// Throws `conflict` if a position holds another record, or none.
    private static func require(_ hash: [UInt8], at place: AuditChain.Position, _ db: any SQLConnection) throws {
        let stored = try db.first(
            "SELECT hash FROM audit_records WHERE writer = $1 AND sequence = $2",
            [.int(place.writer), .int(place.sequence)]
        ) { try $0.bytes(0) }
        guard stored == hash else {
            let (writer, sequence) = (place.writer, place.sequence)
            throw GatewayError(.conflict, "Place \(sequence) of audit writer \(writer) holds another record")
        }
    }

    package func remove(upTo truncation: AuditTruncation) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            let place = AuditChain.Position(writer: truncation.writer, sequence: truncation.sequence)
            try Self.require(truncation.hash, at: place, db)
            try db.execute(
                "DELETE FROM audit_records WHERE writer = $1 AND sequence <= $2",
                [.int(truncation.writer), .int(truncation.sequence)]
            )
            try db.execute(
                """
                INSERT INTO audit_truncations (\(Self.truncationColumns)) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash,
                    time = excluded.time, signature = excluded.signature
                """,
                [
                    .int(truncation.writer), .int(truncation.sequence), .blob(truncation.hash),
                    .time(truncation.time), .blob(truncation.signature),
                ]
            )
        }
    }

    package func append(_ checkpoint: SignedCheckpoint, end: CheckpointEnd) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            let isOvertaken = try db.exists(
                "SELECT 1 FROM audit_checkpoints WHERE number >= $1 AND number < $2 LIMIT 1",
                [.int(checkpoint.number), .int(AuditCheckpoint.numberLimit)]
            )
            let added = try db.execute(
                """
                INSERT INTO audit_checkpoints (number, content, signature) VALUES ($1, $2, $3)
                ON CONFLICT (number) DO NOTHING
                """,
                [.int(checkpoint.number), .bytes(checkpoint.text), .bytes(checkpoint.signature)]
            )
            guard !isOvertaken, added > 0 else {
                let reason = "Checkpoint \(checkpoint.number) of the audit, or a later one, is there already"
                throw GatewayError(.conflict, reason)
            }
            // Numbers that no gateway assigned are evidence, and stay.
            try db.execute(
                """
                DELETE FROM audit_checkpoints
                WHERE number <= $1 AND number > (SELECT removed FROM gateway_checkpoint_end)
                """,
                [.int(end.removed.number)]
            )
            try Self.put(end, db)
        }
    }

    static func put(_ end: CheckpointEnd, _ db: any SQLConnection) throws {
        try db.execute(
            """
            INSERT INTO gateway_checkpoint_end (id, number, digest, removed, removed_digest, signature)
            VALUES (1, $1, $2, $3, $4, $5)
            ON CONFLICT (id) DO UPDATE SET number = excluded.number, digest = excluded.digest,
                removed = excluded.removed, removed_digest = excluded.removed_digest, signature = excluded.signature
            """,
            [
                .int(end.latest.number), .bytes(end.latest.digest), .int(end.removed.number),
                .bytes(end.removed.digest), .bytes(end.signature),
            ]
        )
    }

    package func note(delivered number: Int, to sink: String) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            _ = try db.execute(
                """
                INSERT INTO audit_sinks (name, delivered) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET delivered = excluded.delivered
                """,
                [.text(sink), .int(number)]
            )
        }
    }

    /// True if the store has tenants or secrets of the gateway.
    static func isInUse(_ db: any SQLConnection) throws -> Bool {
        try db.exists("SELECT 1 FROM gateway_secrets UNION ALL SELECT 1 FROM tenants LIMIT 1")
    }
}

// MARK: Chains

extension SQLAuditStore {
    package func heads() async throws(GatewayError) -> [AuditHead] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows("SELECT \(Self.headColumns) FROM audit_heads ORDER BY writer", [], Self.head)
        }
    }

    private static let headColumns = "writer, sequence, hash, state, seal"

    /// A head with an unknown state gets an empty seal, which is never genuine.
    private static func head(_ row: SQLRow) throws -> AuditHead {
        let state = AuditHead.State(rawValue: try row.text(3))
        return AuditHead(
            writer: try row.int(0),
            sequence: try row.int(1),
            hash: try row.bytes(2),
            state: state ?? .closed,
            seal: state == nil ? [] : try row.bytes(4)
        )
    }

    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.database.read(.scan, scope: .gateway) { db in
            // Jumps from writer to writer. DISTINCT would examine every record.
            try db.rows(
                """
                WITH RECURSIVE writers (writer) AS (
                    SELECT min(writer) FROM audit_records
                    UNION ALL
                    SELECT (SELECT min(writer) FROM audit_records WHERE writer > writers.writer)
                    FROM writers WHERE writers.writer IS NOT NULL
                )
                SELECT writer FROM writers WHERE writer IS NOT NULL
                """
            ) { try $0.int(0) }
        }
    }

    /// A page that ends where the file is damaged. It is thrown because the transaction is lost.
    private struct BrokenPage: Error {
        let rows: AuditRows
    }

    package func rows(of writer: Int, from sequence: Int, limit: Int) async throws(GatewayError) -> AuditRows {
        do throws(GatewayError) {
            return try await self.database.read(.scan, scope: .gateway) { db in
                var page = AuditRows(
                    head: try db.first(
                        "SELECT \(Self.headColumns) FROM audit_heads WHERE writer = $1",
                        [.int(writer)],
                        Self.head
                    ),
                    truncation: try db.first(
                        "SELECT \(Self.truncationColumns) FROM audit_truncations WHERE writer = $1",
                        [.int(writer)],
                        Self.truncation
                    ),
                    rows: []
                )
                do {
                    try db.query(
                        """
                        SELECT sequence, time, tenant, body, hash, tenant_uid FROM audit_records
                        WHERE writer = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3
                        """,
                        [.int(writer), .int(sequence), .int(limit)]
                    ) { row in
                        page.rows.append(Self.row(row, of: writer))
                        return true
                    }
                } catch is DamagedFile {
                    page.isDamaged = true
                    throw BrokenPage(rows: page)
                }
                return page
            }
        } catch {
            guard let broken = error.cause as? BrokenPage else { throw error }
            return broken.rows
        }
    }

    /// A row as it is stored. A row with a value of an unexpected type gets an empty hash.
    private static func row(_ row: SQLRow, of writer: Int) -> ChainedAuditRecord {
        func record(_ sequence: Int, _ entry: AuditChain.Entry, _ hash: [UInt8]) -> ChainedAuditRecord {
            ChainedAuditRecord(writer: writer, sequence: sequence, entry: entry, hash: hash)
        }
        guard case .integer(let sequence) = row.values[0], case .integer(let time) = row.values[1],
            case .blob(let body) = row.values[3], case .blob(let hash) = row.values[4]
        else {
            let nothing = AuditChain.Entry(time: Timestamp(microseconds: 0), tenant: nil, body: [])
            // A place that is not a number gets the last position, where no record is expected.
            return record((try? row.int(0)) ?? Int.max, nothing, [])
        }
        let tenant: String?
        let isTenantReadable: Bool
        switch row.values[2] {
        case .string(let text): (tenant, isTenantReadable) = (text, true)
        case .null: (tenant, isTenantReadable) = (nil, true)
        case .integer, .double, .blob: (tenant, isTenantReadable) = (nil, false)
        }
        let entry = AuditChain.Entry(time: Timestamp(microseconds: time), tenant: tenant, body: body)
        let hasUID = body.count >= AuditCodec.tenantUIDRange.upperBound && row.values[5] == .uid(entry.tenantUID)
        return record(Int(sequence), entry, isTenantReadable && hasUID ? hash : [])
    }

    package func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> AuditChain.Position? {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.preferIndexes()
            let (byTime, byTenant) = IndexedStretch.all(of: records)
            var listed = Set<Int>()
            try db.queryMany(
                """
                SELECT sequence FROM audit_records
                WHERE time >= $1 AND time <= $2
                    AND writer + 0 = $3 AND sequence + 0 >= $4 AND sequence + 0 <= $5
                ORDER BY time, writer, sequence
                """,
                byTime.map(\.values)
            ) { listed.insert(try $1.int(0)) }
            var listedByTenant = Set<Int>()
            try db.queryMany(
                """
                SELECT sequence FROM audit_records
                WHERE tenant = $6 AND (tenant_uid, time) >= ($7, $1) AND (tenant_uid, time) <= ($7, $2)
                    AND writer + 0 = $3 AND sequence + 0 >= $4 AND sequence + 0 <= $5
                ORDER BY tenant_uid, time, writer, sequence
                """,
                byTenant.map { $0.value.values + [.text($0.key.tenant), .uid($0.key.uid)] }
            ) { listedByTenant.insert(try $1.int(0)) }
            let unlisted = try records.first { record in
                let isListed = record.entry.tenant == nil || listedByTenant.contains(record.sequence)
                if isListed, listed.contains(record.sequence) { return false }
                // It may have been removed after it was read.
                return try db.exists(
                    "SELECT 1 FROM audit_records WHERE writer = $1 AND sequence = $2",
                    [.int(record.writer), .int(record.sequence)]
                )
            }
            return unlisted?.position
        }
    }

    package func times(
        of writer: Int,
        in places: ClosedRange<Int>,
        every step: Int
    ) async throws(GatewayError) -> [AuditMoment] {
        try await self.database.read(.scan, scope: .gateway) { db in
            func moment(from first: Int, order: String) throws -> AuditMoment? {
                try db.first(
                    """
                    SELECT sequence, time FROM audit_records
                    WHERE writer = $1 AND sequence >= $2 AND sequence <= $3 ORDER BY sequence \(order) LIMIT 1
                    """,
                    [.int(writer), .int(first), .int(places.upperBound)]
                ) { AuditMoment(sequence: try $0.int(0), time: try $0.time(1)) }
            }
            var moments: [AuditMoment] = []
            var next = places.lowerBound
            while let moment = try moment(from: next, order: "ASC") {
                moments.append(moment)
                // The next multiple of the step.
                let (following, overflows) = (moment.sequence &- moment.sequence % step).addingReportingOverflow(step)
                if overflows { break }
                next = following
            }
            if let last = try moment(from: places.lowerBound, order: "DESC"), last.sequence != moments.last?.sequence {
                moments.append(last)
            }
            return moments
        }
    }

    /// Neighbouring records of one chain with similar times, as one query of an index.
    ///
    /// A condition on the position would select the primary key, so statements hide it with `+ 0` and only the time
    /// narrows them. A gap ends a stretch: after one jump of a clock, a single stretch could be as long as the audit.
    private struct IndexedStretch {
        struct Life: Hashable {
            let tenant: String
            let uid: UInt64
        }

        /// A longer gap between neighbours begins another stretch.
        private static let maxGap: Int64 = 3_600 * 1_000_000

        private let writer: Int
        private var times: ClosedRange<Int64>
        private var places: ClosedRange<Int>

        private init(_ record: ChainedAuditRecord) {
            let time = record.entry.time.microseconds
            (self.writer, self.times) = (record.writer, time...time)
            self.places = record.sequence...record.sequence
        }

        /// The stretches of neighbouring records, and those of each tenant among them.
        static func all(
            of records: [ChainedAuditRecord]
        ) -> (byTime: [IndexedStretch], byTenant: [(key: Life, value: IndexedStretch)]) {
            var (byTime, byTenant): ([IndexedStretch], [(key: Life, value: IndexedStretch)]) = ([], [])
            var current: [Life: IndexedStretch] = [:]
            for record in records {
                let time = record.entry.time.microseconds
                if let last = byTime.last, last.isNear(time) {
                    byTime[byTime.count - 1].add(record)
                } else {
                    byTime.append(IndexedStretch(record))
                    byTenant += current
                    current = [:]
                }
                guard let tenant = record.entry.tenant else { continue }
                current[Life(tenant: tenant, uid: record.entry.tenantUID), default: IndexedStretch(record)].add(record)
            }
            return (byTime, byTenant + current)
        }

        private func isNear(_ time: Int64) -> Bool {
            let (earliest, underflows) = self.times.lowerBound.subtractingReportingOverflow(Self.maxGap)
            let (latest, overflows) = self.times.upperBound.addingReportingOverflow(Self.maxGap)
            return (underflows || time >= earliest) && (overflows || time <= latest)
        }

        private mutating func add(_ record: ChainedAuditRecord) {
            let (time, place) = (record.entry.time.microseconds, record.sequence)
            self.times = min(self.times.lowerBound, time)...max(self.times.upperBound, time)
            self.places = min(self.places.lowerBound, place)...max(self.places.upperBound, place)
        }

        /// The parameters of a statement, `$1` to `$5`.
        var values: [SQLValue] {
            [.integer(self.times.lowerBound), .integer(self.times.upperBound), .int(self.writer)]
                + [.int(self.places.lowerBound), .int(self.places.upperBound)]
        }
    }
}

// MARK: Signatures

extension SQLAuditStore {
    package func signatures() async throws(GatewayError) -> AuditSignatures {
        try await self.database.read(.scan, scope: .gateway) { db in
            AuditSignatures(
                oldest: try db.first("\(Self.checkpoints) ORDER BY number LIMIT 1", [], Self.checkpoint),
                latest: try db.first("\(Self.checkpoints) ORDER BY number DESC LIMIT 1", [], Self.checkpoint),
                end: try db.first(
                    "SELECT number, digest, removed, removed_digest, signature FROM gateway_checkpoint_end"
                ) { row in
                    CheckpointEnd(
                        latest: AuditCheckpoint.Link(number: try row.int(0), digest: try row.bytes(1)),
                        removed: AuditCheckpoint.Link(number: try row.int(2), digest: try row.bytes(3)),
                        signature: try row.bytes(4)
                    )
                },
                truncations: try Self.truncations(db),
                isInUse: try Self.isInUse(db),
                unrecordedTenant: try Self.unrecordedTenant(db)
            )
        }
    }

    package func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows(
                "\(Self.checkpoints) WHERE number > $1 ORDER BY number LIMIT $2",
                [.int(number), .int(limit)],
                Self.checkpoint
            )
        }
    }

    private static let checkpoints = "SELECT number, content, signature FROM audit_checkpoints"

    private static func checkpoint(_ row: SQLRow) throws -> SignedCheckpoint {
        SignedCheckpoint(number: try row.int(0), text: try row.bytes(1), signature: try row.bytes(2))
    }

    package func truncations() async throws(GatewayError) -> [AuditTruncation] {
        try await self.database.read(.scan, scope: .gateway) { try Self.truncations($0) }
    }

    private static func truncations(_ db: any SQLConnection) throws -> [AuditTruncation] {
        try db.rows("SELECT \(self.truncationColumns) FROM audit_truncations ORDER BY writer", [], self.truncation)
    }

    static let truncationColumns = "writer, sequence, hash, time, signature"

    private static func truncation(_ row: SQLRow) throws -> AuditTruncation {
        AuditTruncation(
            writer: try row.int(0),
            sequence: try row.int(1),
            hash: try row.bytes(2),
            time: try row.time(3),
            signature: try row.bytes(4)
        )
    }

    package func sinks() async throws(GatewayError) -> [String: Int] {
        try await self.database.read(.scan, scope: .gateway) { db in
            let rows = try db.rows("SELECT name, delivered FROM audit_sinks") { (try $0.text(0), try $0.int(1)) }
            return Dictionary(uniqueKeysWithValues: rows)
        }
    }

    /// A tenant without any record, if no records were deleted by age.
    private static func unrecordedTenant(_ db: any SQLConnection) throws -> String? {
        try db.first(
            """
            SELECT id FROM tenants WHERE NOT EXISTS (SELECT 1 FROM audit_truncations)
                AND NOT EXISTS (SELECT 1 FROM audit_records WHERE tenant = tenants.id)
            ORDER BY id LIMIT 1
            """
        ) { try $0.text(0) }
    }
}

// MARK: Replicas

extension SQLAuditStore: AuditChainRegistry {
    package func begin(
        _ record: ChainedAuditRecord,
        head: AuditHead,
        by replica: ReplicaID
    ) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try Self.append([record], head: head, db)
            // A repeated commit finds its own row. Two replicas that start at one moment may begin with the same
            // record.
            try db.execute(
                "INSERT INTO audit_writers (writer, replica) VALUES ($1, $2) ON CONFLICT (writer) DO NOTHING",
                [.int(record.writer), .text(replica.text)]
            )
            let isOwn = try db.exists(
                "SELECT 1 FROM audit_writers WHERE writer = $1 AND replica = $2",
                [.int(record.writer), .text(replica.text)]
            )
            guard isOwn else {
                throw GatewayError(.conflict, "Another replica writes as audit writer \(record.writer)")
            }
            let living = try db.execute(
                "UPDATE replicas SET seen_at = gateway_time() WHERE id = $1",
                [.text(replica.text)]
            )
            guard living > 0 else {
                throw GatewayError(.storeUnavailable, "The store has no heartbeat of this replica yet")
            }
        }
    }

    /// The chains of live replicas. Empty if one process has the store to itself.
    package func liveWriters() async throws(GatewayError) -> Set<Int> {
        guard self.database.isShared else { return [] }
        return try await self.database.read(scope: .gateway) { db in
            Set(
                try db.rows(
                    """
                    SELECT audit_writers.writer FROM audit_writers JOIN replicas ON replicas.id = audit_writers.replica
                    WHERE replicas.seen_at > gateway_time() - $1
                    """,
                    [.microseconds(Replicas.Sighting.aliveAge)]
                ) { try $0.int(0) }
            )
        }
    }

    package func abandonedChains(silentFor age: Duration) async throws(GatewayError) -> [Int] {
        try await self.database.read(scope: .gateway) { db in
            try db.rows(
                """
                SELECT audit_heads.writer FROM audit_heads
                LEFT JOIN audit_writers ON audit_writers.writer = audit_heads.writer
                LEFT JOIN replicas ON replicas.id = audit_writers.replica
                WHERE audit_heads.state = 'open'
                    AND (replicas.id IS NULL OR replicas.seen_at + $1 <= gateway_time())
                ORDER BY audit_heads.writer
                """,
                [.microseconds(age)]
            ) { try $0.int(0) }
        }
    }
}

extension SQLValue {
    /// A tenant's uid as a signed integer.
    static func uid(_ uid: UInt64) -> SQLValue { .integer(Int64(bitPattern: uid)) }
}
