package import GatewayCore

/// The audit's chains, their sealed ends, and what is signed of them.
package struct SQLAuditStore: AuditStore {
    /// How long one page may look for records; others wait for it.
    private static let pageDuration = Duration.milliseconds(250)

    private static let insertion = SQLInsertion(
        into: "audit_records",
        ["writer", "sequence", "time", "tenant", "tenant_uid", "body", "hash"],
        "ON CONFLICT (writer, sequence) DO NOTHING"
    )

    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    // MARK: Chains

    package func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try Self.append(records, head: head, db)
        }
    }

    /// The same within a transaction.
    static func append(_ records: [ChainedAuditRecord], head: AuditHead, _ db: any SQLConnection) throws {
        let rows = records.map { record -> [SQLValue] in
            [
                .int(record.writer), .int(record.sequence), .time(record.entry.time), .text(record.entry.tenant),
                .uid(record.entry.tenantUID), .blob(record.entry.body), .blob(record.hash),
            ]
        }
        let added = try db.insert(rows, by: Self.insertion)
        // A repeated commit meets its own records. Anything else in their places is another writer's, and to go on would
        // break the chain without a trace.
        if added < records.count {
            for record in records {
                try self.require(record.hash, at: AuditPosition(writer: record.writer, sequence: record.sequence), db)
            }
        }
        // Nor must a repeated commit take the head back.
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

    /// Throws `conflict` where a place holds another record, or none.
    private static func require(_ hash: [UInt8], at place: AuditPosition, _ db: any SQLConnection) throws {
        let stored = try db.first(
            "SELECT hash FROM audit_records WHERE writer = $1 AND sequence = $2",
            [.int(place.writer), .int(place.sequence)]
        ) { try $0.bytes(0) }
        guard stored == hash else {
            let (writer, sequence) = (place.writer, place.sequence)
            throw GatewayError(.conflict, "Place \(sequence) of audit writer \(writer) holds another record")
        }
    }

    package func heads() async throws(GatewayError) -> [AuditHead] {
        try await self.database.read(.scan, scope: .gateway) { db in
            try db.rows("SELECT \(Self.headColumns) FROM audit_heads ORDER BY writer", [], Self.head)
        }
    }

    private static let headColumns = "writer, sequence, hash, state, seal"

    /// A head whose state is none of the known ones comes with an empty seal, which is never genuine.
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
            // Jumps from writer to writer; DISTINCT would look at every record.
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

    /// A page that ends where the file is damaged; thrown, since a transaction that met that is lost.
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

    /// A row as it is stored; one with a value of another type than the gateway writes comes with an empty hash.
    private static func row(_ row: SQLRow, of writer: Int) -> ChainedAuditRecord {
        func record(_ sequence: Int, _ entry: AuditEntry, _ hash: [UInt8]) -> ChainedAuditRecord {
            ChainedAuditRecord(writer: writer, sequence: sequence, entry: entry, hash: hash)
        }
        guard case .integer(let sequence) = row.values[0], case .integer(let time) = row.values[1],
            case .blob(let body) = row.values[3], case .blob(let hash) = row.values[4]
        else {
            let nothing = AuditEntry(time: Timestamp(microseconds: 0), tenant: nil, body: [])
            // What is no number sorts behind all places, where nothing is expected.
            return record((try? row.int(0)) ?? Int.max, nothing, [])
        }
        let tenant: String?
        let isTenantReadable: Bool
        switch row.values[2] {
        case .string(let text): (tenant, isTenantReadable) = (text, true)
        case .null: (tenant, isTenantReadable) = (nil, true)
        case .integer, .double, .blob: (tenant, isTenantReadable) = (nil, false)
        }
        let entry = AuditEntry(time: Timestamp(microseconds: time), tenant: tenant, body: body)
        let hasUID = body.count >= AuditCodec.tenantUIDRange.upperBound && row.values[5] == .uid(entry.tenantUID)
        return record(Int(sequence), entry, isTenantReadable && hasUID ? hash : [])
    }

    package func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> AuditPosition? {
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
                // It may have been removed since it was read.
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

    package func page(_ query: AuditQuery) async throws(GatewayError) -> AuditPage {
        var scope = SQLScope.gateway
        if query.tenantUID != nil, let tenant = query.tenant { scope = .tenant(tenant) }
        return try await self.database.read(.listing, scope: scope) { db in
            let end = ContinuousClock.now + Self.pageDuration
            return try AuditPager.page(query, db) { ContinuousClock.now >= end }
        }
    }

    package func remove(upTo truncation: AuditTruncation) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            let place = AuditPosition(writer: truncation.writer, sequence: truncation.sequence)
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

    // MARK: What is signed

    package func signatures() async throws(GatewayError) -> AuditSignatures {
        try await self.database.read(.scan, scope: .gateway) { db in
            AuditSignatures(
                oldest: try db.first("\(Self.checkpoints) ORDER BY number LIMIT 1", [], Self.checkpoint),
                latest: try db.first("\(Self.checkpoints) ORDER BY number DESC LIMIT 1", [], Self.checkpoint),
                end: try db.first(
                    "SELECT number, digest, removed, removed_digest, signature FROM gateway_checkpoint_end"
                ) { row in
                    CheckpointEnd(
                        latest: AuditCheckpointLink(number: try row.int(0), digest: try row.bytes(1)),
                        removed: AuditCheckpointLink(number: try row.int(2), digest: try row.bytes(3)),
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

    private static let truncationColumns = "writer, sequence, hash, time, signature"

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
            // Numbers that no gateway gave away are evidence, and stay.
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

    /// Whether the store has secrets of the gateway or tenants.
    static func isInUse(_ db: any SQLConnection) throws -> Bool {
        try db.exists("SELECT 1 FROM gateway_secrets UNION ALL SELECT 1 FROM tenants LIMIT 1")
    }

    /// A tenant of whom there is no record, where no records were removed by age.
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

/// Records of one chain that were made at about the same time, to be asked for by an index.
///
/// A condition on the place alone would lead to the primary key, so statements hide that: only the time narrows them. A gap
/// ends a stretch, since a clock that jumped once must not make each of them as long as the audit.
private struct IndexedStretch {
    struct Life: Hashable {
        let tenant: String
        let uid: UInt64
    }

    /// A longer time between neighbours begins another stretch.
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

extension SQLAuditStore: AuditChainRegistry {
    package func begin(
        _ record: ChainedAuditRecord,
        head: AuditHead,
        by replica: ReplicaID
    ) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try Self.append([record], head: head, db)
            // A repeated commit meets its own row; two replicas that start at one moment may begin with the same record.
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
                throw GatewayError(.storeUnavailable, "The store has not heard of this replica yet")
            }
        }
    }

    /// The chains that living replicas write; none where a process has the store to itself.
    package func liveWriters() async throws(GatewayError) -> Set<Int> {
        guard self.database.isShared else { return [] }
        return try await self.database.read(scope: .gateway) { db in
            Set(
                try db.rows(
                    """
                    SELECT audit_writers.writer FROM audit_writers JOIN replicas ON replicas.id = audit_writers.replica
                    WHERE replicas.seen_at > gateway_time() - $1
                    """,
                    [.microseconds(ReplicaSighting.aliveAge)]
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

/// Finds a page of the audit within one read.
///
/// It goes along the index by time, in steps of which each looks at a bounded number of records, and looks at the time
/// after each: a rare match costs its seeker several pages instead of the gateway a long read. A page has looked at one record
/// at least, so that pages come to an end.
///
/// Places and sizes are read first, and then the records that the page takes: PostgreSQL sends all rows of a statement,
/// wherever their reader stops.
struct AuditPager {
    /// The most records that one step looks at.
    static let step = 4_096
    /// The bodies of one page, in bytes; a list of a thousand recipients has some 70,000.
    private static let maxBytes = 4 << 20
    /// How much earlier than its message's id a record may be; clocks are set now and then.
    private static let leadMicroseconds: Int64 = 10 * 1_000_000
    /// How much later: a send ends within its deadline of 20 s.
    private static let lagMicroseconds: Int64 = 60 * 1_000_000
    private static let order = "ORDER BY time DESC, writer DESC, sequence DESC"

    /// Whose records are looked for: all, or those of one life of a tenant.
    private typealias Owner = (tenant: String, uid: UInt64)?

    /// What a walk along the index has found, and the last place that it has looked at; `nil` where it is at the end.
    private struct Walk {
        var records: [ChainedAuditRecord] = []
        var reached: AuditCursor?
    }

    private let query: AuditQuery
    private let db: any SQLConnection
    /// The place behind all that is looked for; the index is read downwards from it.
    private let upper: AuditCursor
    private let lower: AuditCursor
    private let limit: Int

    private init(_ query: AuditQuery, _ db: any SQLConnection) {
        (self.query, self.db, self.limit) = (query, db, max(1, query.limit))
        var (from, to) = (query.from?.microseconds ?? .min, query.to?.microseconds ?? .max)
        if let made = query.messageID.flatMap(Self.microseconds(inUUID:)) {
            from = max(from, made - Self.leadMicroseconds)
            to = min(to, made + Self.lagMicroseconds)
        }
        self.lower = AuditCursor(before: from)
        self.upper = query.before.flatMap { $0.time.microseconds < to ? $0 : nil } ?? AuditCursor(before: to)
    }

    /// Finds a page; `isTimeUp` says whether it is to end with what it has found.
    ///
    /// An operator's list by a tenant's name has the records of all tenants of that name, each by a walk of its own. What
    /// one of them has found below the place that another has reached is left to the next page.
    static func page(_ query: AuditQuery, _ db: any SQLConnection, isTimeUp: () -> Bool) throws -> AuditPage {
        let pager = AuditPager(query, db)
        let walks = try pager.owners().map { try pager.walk($0, isTimeUp) }
        let reached = walks.compactMap(\.reached).max { Self.isBefore($0, $1) }
        var records = walks.flatMap(\.records)
        if let reached { records.removeAll { Self.isBefore(AuditCursor($0), reached) } }
        records.sort { Self.isBefore(AuditCursor($1), AuditCursor($0)) }
        guard records.count > pager.limit else { return AuditPage(records: records, next: reached) }
        records.removeLast(records.count - pager.limit)
        return AuditPage(records: records, next: records.last.map { AuditCursor($0) })
    }

    private static func isBefore(_ one: AuditCursor, _ other: AuditCursor) -> Bool {
        (one.time, one.position.writer, one.position.sequence)
            < (other.time, other.position.writer, other.position.sequence)
    }

    private func owners() throws -> [Owner] {
        guard let tenant = self.query.tenant else { return [nil] }
        if let uid = self.query.tenantUID { return [(tenant, uid)] }
        // Jumps from life to life; DISTINCT would look at every record.
        let first = "SELECT tenant_uid FROM audit_records WHERE tenant = $1"
        let order = "ORDER BY tenant_uid LIMIT 1"
        var owners: [Owner] = []
        var next = try self.db.first("\(first) \(order)", [.text(tenant)]) { try $0.int64(0) }
        while let uid = next {
            owners.append((tenant, UInt64(bitPattern: uid)))
            let values: [SQLValue] = [.text(tenant), .int(uid)]
            next = try self.db.first("\(first) AND tenant_uid > $2 \(order)", values) { try $0.int64(0) }
        }
        return owners
    }

    /// Walks downwards until there is a record more than the page takes, the time is up, or nothing is left.
    private func walk(_ owner: Owner, _ isTimeUp: () -> Bool) throws -> Walk {
        let filters = self.filters
        var walk = Walk()
        var (bytes, batch) = (0, self.limit + 1)
        var upper = self.upper
        while true {
            var conditions = Conditions()
            if let owner { conditions.add("tenant = $ AND tenant_uid = $", [.text(owner.tenant), .uid(owner.uid)]) }
            conditions.add("(time, writer, sequence) < ($, $, $)", upper.values)
            // Without a filter, each record that is looked at is one of the page.
            let end = filters.isEmpty ? nil : try self.endOfStep(conditions)
            conditions.add("(time, writer, sequence) >= ($, $, $)", (end ?? self.lower).values)
            for filter in filters { conditions.add("instr(body, $) > 0", [.blob(filter)]) }
            let matches = try self.db.rows(
                """
                SELECT time, writer, sequence, length(body) FROM audit_records \(conditions.text) \(Self.order)
                LIMIT \(batch)
                """,
                conditions.values
            ) { (place: try $0.cursor(0), size: try $0.int(3)) }
            var (places, size) = ([AuditCursor](), 0)
            for match in matches where bytes + size < Self.maxBytes {
                places.append(match.place)
                size += match.size
            }
            let found = try self.records(at: places)
            walk.records += found
            bytes += found.reduce(0) { $0 + $1.entry.body.count }
            if walk.records.count > self.limit { return walk }
            let isCut = places.count < matches.count || matches.count == batch
            if let last = places.last, isCut {
                // The page is full, or some records only contain what a filter asks for, and the step has more.
                if bytes >= Self.maxBytes || isTimeUp() {
                    walk.reached = last
                    return walk
                }
                upper = last
                batch = min(2 * batch, max(Self.step, batch))
                continue
            }
            guard let end else { return walk }
            upper = end
            if bytes >= Self.maxBytes || isTimeUp() {
                walk.reached = end
                return walk
            }
        }
    }

    /// The records at some places, as far as they match, in the same order.
    private func records(at places: [AuditCursor]) throws -> [ChainedAuditRecord] {
        var records: [ChainedAuditRecord] = []
        try self.db.queryMany(
            """
            SELECT writer, sequence, time, tenant, body, hash FROM audit_records WHERE writer = $1 AND sequence = $2
            """,
            places.map { [.int($0.position.writer), .int($0.position.sequence)] }
        ) { _, row in
            if let record = Self.record(row), self.query.matches(record.record) { records.append(record) }
        }
        return records
    }

    /// The last place of a step; `nil` where fewer records are left.
    private func endOfStep(_ conditions: Conditions) throws -> AuditCursor? {
        var conditions = conditions
        conditions.add("(time, writer, sequence) >= ($, $, $)", self.lower.values)
        return try self.db.first(
            """
            SELECT time, writer, sequence FROM audit_records \(conditions.text) \(Self.order)
            LIMIT 1 OFFSET \(Self.step - 1)
            """,
            conditions.values
        ) { try $0.cursor(0) }
    }

    /// What the body of a record that matches contains; it may stand in another field, so that not all of these match.
    private var filters: [[UInt8]] {
        var filters = [
            self.query.action, self.query.outcome?.rawValue, self.query.code, self.query.principal,
            self.query.requestID, self.query.messageID,
        ]
        .compactMap { $0.map { Array($0.utf8) } }
        if let target = self.query.target {
            var bytes: [UInt8] = []
            target.append(to: &bytes)
            filters.append(bytes)
        }
        return filters
    }

    /// A record that the gateway would not have written is a verifier's to find, and no page's to show.
    private static func record(_ row: SQLRow) -> ChainedAuditRecord? {
        do {
            let (writer, sequence, hash) = (try row.int(0), try row.int(1), try row.bytes(5))
            let entry = AuditEntry(time: try row.time(2), tenant: try row.optionalText(3), body: try row.bytes(4))
            guard entry.isReadable else { return nil }
            return ChainedAuditRecord(writer: writer, sequence: sequence, entry: entry, hash: hash)
        } catch {
            return nil
        }
    }

    /// Conditions of a statement, with the values of their parameters.
    private struct Conditions {
        private(set) var text = ""
        private(set) var values: [SQLValue] = []

        /// Adds a condition, in which each `$` stands for the next of some values.
        mutating func add(_ condition: String, _ values: [SQLValue]) {
            self.text += self.text.isEmpty ? "WHERE " : "AND "
            var number = self.values.count
            for character in condition {
                self.text.append(character)
                guard character == "$" else { continue }
                number += 1
                self.text += "\(number)"
            }
            self.text += " "
            self.values += values
        }
    }

    /// The time that begins a UUID of version 7 (RFC 9562, 5.7); `nil` for any other text.
    private static func microseconds(inUUID text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 36, bytes[8] == UInt8(ascii: "-"), bytes[14] == UInt8(ascii: "7") else { return nil }
        return Int64(String(decoding: bytes[0..<8] + bytes[9..<13], as: UTF8.self), radix: 16).map { $0 * 1_000 }
    }
}

extension AuditCursor {
    /// The place before all records of a moment.
    fileprivate init(before microseconds: Int64) {
        self.init(time: Timestamp(microseconds: microseconds), position: AuditPosition(writer: .min, sequence: .min))
    }

    /// What records are ordered by.
    fileprivate var values: [SQLValue] { [.time(self.time), .int(self.position.writer), .int(self.position.sequence)] }
}

extension SQLRow {
    /// The place whose time, writer and sequence stand in a column and the next two.
    fileprivate func cursor(_ column: Int) throws(DamagedValue) -> AuditCursor {
        let position = AuditPosition(writer: try self.int(column + 1), sequence: try self.int(column + 2))
        return AuditCursor(time: try self.time(column), position: position)
    }
}

extension SQLValue {
    /// A tenant's uid as a signed number.
    fileprivate static func uid(_ uid: UInt64) -> SQLValue { .integer(Int64(bitPattern: uid)) }
}
