import GatewayCore
import MetricsTestKit
import Testing

@testable import GatewayStorage

/// Leadership and notifications of replicas that share a PostgreSQL database.
@Suite("PostgreSQLWatcher", .timeLimit(.minutes(5)))
struct PostgreSQLWatcherTests {
    /// The connection that holds the lead.
    private static let leader = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"

    /// Runs a body with one database as opened by two replicas.
    private func withReplicas(
        _ body: (_ one: PostgreSQLDatabase, _ two: PostgreSQLDatabase, PostgreSQLSettings) async throws -> Void
    ) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let one = try await PostgreSQLDatabase(settings)
            defer { one.close() }
            let two = try await PostgreSQLDatabase(settings)
            defer { two.close() }
            try await body(one, two, settings)
        }
    }

    @Test("One of two replicas leads until it resigns or closes")
    func lead() async throws {
        try await self.withReplicas { one, two, _ async throws in
            #expect(one.isShared)
            #expect(try await one.isLeader())
            #expect(try await one.isLeader())
            #expect(try await !two.isLeader())
            // A follower can't resign another's lead.
            await two.resignLead()
            #expect(try await !two.isLeader())
            await one.resignLead()
            #expect(try await two.isLeader())
            #expect(try await !one.isLeader())
            two.close()
            while try await !one.isLeader() { await Task.yield() }
            await expectError(.storeUnavailable, "closed") { try await two.isLeader() }
            await two.resignLead()
        }
    }

    @Test("Only one replica leads if two ask concurrently")
    func race() async throws {
        try await self.withReplicas { one, two, _ in
            let leaders = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<16 {
                    let database = number.isMultiple(of: 2) ? one : two
                    group.addTask { try await database.isLeader() ? number % 2 : -1 }
                }
                return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
            }
            #expect(leaders.subtracting([-1]).count == 1)
        }
    }

    @Test("A leader whose connection breaks loses the lead to the replica that asks first, possibly itself")
    func lost() async throws {
        try await self.withReplicas { one, two, settings in
            #expect(try await one.isLeader())
            try PostgreSQLFixture.end(where: Self.leader, in: settings)
            #expect(try await two.isLeader())
            #expect(try await !one.isLeader())
            try PostgreSQLFixture.end(where: Self.leader, in: settings)
            #expect(try await two.isLeader())
        }
    }

    @Test("The leader metric shows at once that the lead was taken, lost with the connection, or resigned")
    func metric() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let factory = TestMetrics()
            let database = try await PostgreSQLDatabase(settings, metrics: GatewayMetrics(factory: factory))
            defer { database.close() }
            let leads = try factory.expectMeter("fcmgw_leader")
            let (connections, continuation) = AsyncStream.makeStream(of: Void.self)
            var connection = connections.makeAsyncIterator()
            database.whenNotified { continuation.yield() }
            _ = await connection.next()
            #expect(leads.lastValue == 0)
            #expect(try await database.isLeader())
            #expect(leads.lastValue == 1)
            try PostgreSQLFixture.end(where: Self.leader, in: settings)
            _ = await connection.next()
            #expect(leads.lastValue == 0)
            #expect(try await database.isLeader())
            #expect(leads.lastValue == 1)
            await database.resignLead()
            #expect(leads.lastValue == 0)
        }
    }

    @Test("A replica can't lead while the server accepts no connections, and leads again afterwards")
    func outage() async throws {
        try await self.withReplicas { one, _, settings in
            let (connections, continuation) = AsyncStream.makeStream(of: Void.self)
            var connection = connections.makeAsyncIterator()
            one.whenNotified { continuation.yield() }
            _ = await connection.next()
            #expect(try await one.isLeader())
            let name = try PostgreSQLFixture.name(of: settings)
            try PostgreSQLFixture.run("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
            try PostgreSQLFixture.end(where: Self.leader, in: settings)
            await expectError(.storeUnavailable, "can't be reached") { try await one.isLeader() }
            await expectError(.storeUnavailable, "can't be reached") { try await one.isLeader() }
            await one.resignLead()
            try PostgreSQLFixture.run("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
            _ = await connection.next()
            #expect(try await one.isLeader())
        }
    }

    @Test("A replica is notified of changes, and of a reconnection that may have missed some")
    func notifications() async throws {
        try await self.withReplicas { one, two, settings in
            let (events, continuation) = AsyncStream.makeStream(of: Void.self)
            var event = events.makeAsyncIterator()
            one.whenNotified { continuation.yield() }
            _ = await event.next()
            let directory = SQLDirectoryStore(database: two)
            for name in ["acme", "other"] {
                try await directory.apply(.putTenant(try DirectoryFixtures.tenant(name), salt: [1]))
                _ = await event.next()
            }
            // The last statement of the listening connection.
            try PostgreSQLFixture.end(where: "query = 'SELECT 1'", in: settings)
            _ = await event.next()
            try await directory.apply(.deleteTenant(try #require(TenantID("acme"))))
            _ = await event.next()
        }
    }

    @Test("A database without leadership or notifications opens no connection outside its pool")
    func unused() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            let count = try await database.read(scope: .gateway) { db in
                try db.first(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND usename = session_user
                    """
                ) { try $0.int(0) }
            }
            #expect(count == 1)
        }
    }
}
