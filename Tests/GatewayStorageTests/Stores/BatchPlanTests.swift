import FCMModel
import GatewayCore
import Testing

@testable import GatewayStorage

/// The rows that the runner's statements read beside many chunks that are due later.
struct BatchPlanTests {
    private static let future = 4_000
    private static let limit = 8

    /// Runs with two million recipients that are due tomorrow, and a few that are due now.
    private static func with(_ kind: StoreKind, _ body: @escaping @Sendable (any SQLConnection) throws -> Void)
        async throws
    {
        try await kind.withDatabase { database in
            let change = Directory.Change.putTenant(try DirectoryFixtures.tenant("acme"), salt: [1])
            try await SQLDirectoryStore(database: database).apply(change)
            var bounds = BatchBounds()
            bounds.maxWaitingPerTenant = 3_000_000
            let owner = ReplicaID(text: "one")
            let store = SQLBatchStore(database: database, bounds: bounds, owner: owner, leases: .unshared)
            for (id, due, count) in [("future", 2_000_000_000, Self.future), ("now", 0, Self.limit)] {
                let batch = Batch(
                    id: id,
                    tenant: try #require(TenantID("acme")),
                    state: .queued,
                    keyID: "key",
                    createdAt: DirectoryFixtures.start,
                    dueAt: DirectoryFixtures.start.advanced(by: .seconds(due)),
                    expiresAt: DirectoryFixtures.start
                )
                let chunks = Array(repeating: Batch.Chunk(count: 500, pending: [1]), count: count)
                #expect(
                    try await store.apply([.create(BatchWrite.New(batch, message: [1], chunks: chunks))]) == [.done]
                )
            }
            try await database.write(scope: .gateway, isolation: .readCommitted, body)
        }
    }

    private static let values: [SQLValue] = [
        .string("acme"), .int(Batch.Priority.normal.order), .int(Self.limit), .string("one"), .int(60_000_000),
    ]

    @Test("A claim by SQLite finds its chunks by an index, up to the due ones")
    func sqlite() async throws {
        try await Self.with(.sqlite) { db in
            let statement = "EXPLAIN QUERY PLAN " + BatchTables.claimStatement(isShared: false)
            let plan = try db.rows(statement, Self.values) { try $0.text(3) }
            let searches = plan.filter { $0.contains("batch_chunks") || $0.contains(" c ") }
            #expect(!searches.isEmpty && searches.allSatisfy { $0.hasPrefix("SEARCH") }, "\(plan)")
            #expect(searches.contains { $0.contains("(tenant=? AND priority=? AND due_at<?)") }, "\(plan)")
        }
    }

    @Test("A claim by PostgreSQL reads about twice its limit")
    func postgreSQL() async throws {
        try await Self.with(.postgresql) { db in
            let statement = "EXPLAIN (ANALYZE, TIMING off) " + BatchTables.claimStatement(isShared: true)
            let plan = try db.rows(statement, Self.values) { try $0.text(0) }
            let scans = plan.filter { $0.contains("Scan") && $0.contains("batch_chunks") }
            let removed = plan.filter { $0.contains("Rows Removed") }
            let read = try
                (scans.map { try Self.rows(of: $0) } + removed.map { Int($0.split(separator: " ").last ?? "") ?? 0 })
                .reduce(0, +)
            #expect(!scans.isEmpty && read <= 2 * Self.limit + 10, "\(plan.joined(separator: "\n"))")
        }
    }

    /// The rows of a line such as `… (actual rows=8 loops=2)`.
    private static func rows(of line: String) throws -> Int {
        if line.contains("never executed") { return 0 }
        let match = try #require(try /actual rows=(\d+) loops=(\d+)/.firstMatch(in: line), "\(line)")
        return try #require(Int(match.1)) * #require(Int(match.2))
    }
}
