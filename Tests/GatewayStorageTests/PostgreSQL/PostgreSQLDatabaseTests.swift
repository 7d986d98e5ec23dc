import GatewayCore
import ProcessTestKit
import Synchronization
import Testing

@testable import GatewayStorage

/// The PostgreSQL driver's behaviour beyond the contract of all databases.
struct PostgreSQLDatabaseTests {
    private static func insert(_ number: Int, _ db: any SQLConnection) throws {
        let sql = "INSERT INTO audit_checkpoints (number, content, signature) VALUES ($1, $2, $3)"
        try db.execute(sql, [.int(number), .blob([1]), .blob([2])])
    }

    private static func numbers(_ database: any SQLDatabase) async throws -> [Int] {
        try await database.read(scope: .gateway) { db in
            try db.rows("SELECT number FROM audit_checkpoints ORDER BY number") { try $0.int(0) }
        }
    }

    private static func putTenants(_ database: any SQLDatabase) async throws {
        let directory = SQLDirectoryStore(database: database)
        for name in ["acme", "other"] {
            try await directory.apply(.putTenant(try DirectoryFixtures.tenant(name), salt: [1]))
        }
    }

    // MARK: Rows of tenants

    private static let insertGroup = """
        INSERT INTO device_groups (tenant, name, upstream_name, members, is_complete, version, updated_at)
        VALUES ($1, $2, '', '[]', 1, 1, 0)
        """

    @Test("A tenant's transaction sees and changes only its own rows")
    func rowsOfTenants() async throws {
        try await withPostgreSQLDatabase { database in
            try await Self.putTenants(database)
            for name in ["acme", "other"] {
                try await database.write(scope: .tenant(name), isolation: .serializable) { db in
                    _ = try db.execute(Self.insertGroup, [.text(name), .text("group")])
                }
            }
            let seen = try await database.read(scope: .tenant("acme")) { db in
                try db.rows("SELECT tenant FROM device_groups") { try $0.text(0) }
                    + db.rows("SELECT id FROM tenants") { try $0.text(0) }
            }
            #expect(seen == ["acme", "acme"])
            let removed = try await database.write(scope: .tenant("acme"), isolation: .readCommitted) { db in
                try db.execute("DELETE FROM device_groups")
            }
            #expect(removed == 1)
            await expectError(.storeUnavailable, "lacks rights") {
                try await database.write(scope: .tenant("acme"), isolation: .readCommitted) { db in
                    try db.execute(Self.insertGroup, [.text("other"), .text("intruder")])
                }
            }
            let all = try await database.read(scope: .gateway) { db in
                try db.rows("SELECT tenant, name FROM device_groups") { [try $0.text(0), try $0.text(1)] }
            }
            #expect(all == [["other", "group"]])
        }
    }

    @Test(
        "A tenant's transaction can't read data that its requests don't need",
        arguments: [
            "salt FROM tenants", "1 FROM credentials", "1 FROM gateway_secrets", "1 FROM api_keys", "1 FROM limits",
        ]
    )
    func rightsOfTenants(selection: String) async throws {
        try await withPostgreSQLDatabase { database in
            await expectError(.storeUnavailable, "lacks rights") {
                try await database.read(scope: .tenant("acme")) { db in
                    try db.exists("SELECT \(selection)")
                }
            }
        }
    }

    // MARK: Transactions

    @Test("A transaction is not reported as committed if its closure hid a failed statement")
    func hiddenFailure() async throws {
        try await withPostgreSQLDatabase { database async throws in
            await expectError(.storeUnavailable) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    try Self.insert(1, db)
                    try? Self.insert(1, db)
                }
            }
            #expect(try await Self.numbers(database) == [])
        }
    }

    @Test("Errors contain the SQLSTATE but no parameter values")
    func values() async throws {
        try await withPostgreSQLDatabase { database in
            for sql in ["SELECT CAST($1 AS BIGINT)", "SELECT 1 FROM tenants WHERE created_at = $1"] {
                let error = await #expect(throws: GatewayError.self) {
                    try await database.read(scope: .gateway) { db in try db.exists(sql, [.text("canary")]) }
                }
                let text = "\(error?.message ?? "") \(error?.cause.map { "\($0)" } ?? "")"
                #expect(text.contains("SQLSTATE "))
                #expect(!text.contains("canary"))
            }
        }
    }

    @Test("A connection that the server closed while idle is replaced without an error")
    func closedWhileIdle() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            try await database.write(scope: .gateway, isolation: .serializable) { try Self.insert(1, $0) }
            try PostgreSQLFixture.end(where: "usename = 'gateway'", in: settings)
            try await database.write(scope: .gateway, isolation: .serializable) { try Self.insert(2, $0) }
            #expect(try await Self.numbers(database) == [1, 2])
        }
    }

    @Test("A transaction whose connection breaks is rolled back, and the next one gets another connection")
    func closedWithin() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            await expectError(.storeUnavailable) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    try Self.insert(1, db)
                    try PostgreSQLFixture.end(where: "usename = 'gateway'", in: settings)
                    try Self.insert(2, db)
                }
            }
            #expect(try await Self.numbers(database) == [])
        }
    }

    @Test("A COMMIT whose answer is lost succeeds if the server committed it")
    func lostCommit() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let name = try PostgreSQLFixture.name(of: settings)
            // Its transactions are committed and then wait for a standby that does not exist.
            try PostgreSQLFixture.run("ALTER DATABASE \(name) SET synchronous_commit = 'on'")
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            async let stored: Void = database.write(scope: .gateway, isolation: .serializable) { db in
                try Self.insert(1, db)
            }
            try PostgreSQLFixture.end(where: "wait_event = 'SyncRep'", in: settings)
            try await stored
            #expect(try await Self.numbers(database) == [1])
        }
    }

    @Test("A COMMIT whose answer is lost fails if the server aborted it")
    func failedCommit() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            try PostgreSQLFixture.endConnectionAtCommit(in: settings)
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            let error = await #expect(throws: GatewayError.self) {
                try await database.write(scope: .gateway, isolation: .serializable) { try Self.insert(1, $0) }
            }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.cause is PostgreSQLError)
            #expect(try await Self.numbers(database) == [])
        }
    }

    @Test("A COMMIT whose answer is lost is unknown if the server reuses its transaction id after a crash")
    func sameNumber() async throws {
        let server = try PostgreSQLServer()
        let settings = PostgreSQLSettings(url: server.url(database: "postgres", user: "postgres"), poolSize: 2)
        let database = try await PostgreSQLDatabase(settings, migrates: true)
        defer { database.close() }
        // A server that logged its running transactions just before the crash assigns higher ids after it.
        for _ in 0..<5 {
            let status = Mutex<String?>(nil)
            let error = await #expect(throws: GatewayError.self) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    // Nothing was written under this id, so the crash erases every trace of it.
                    let number = try db.first("SELECT gateway_transaction()") { try $0.int64(0) } ?? 0
                    try server.crash()
                    let other = PostgreSQLConnection(session: try PostgreSQLSession(settings))
                    while try other.first("SELECT gateway_transaction()", [], { try $0.int64(0) }) ?? 0 < number {}
                    let found = try other.first(
                        "SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))",
                        [.string("\(number)")]
                    ) { try $0.text(0) }
                    status.withLock { $0 = found }
                }
            }
            guard status.withLock({ $0 }) == "committed" else { continue }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.cause is CommitOutcomeUnknown)
            return
        }
        Issue.record("The server never gave the number out again")
    }

    @Test("A cancelled read returns at once, and its connection is reused after the server's answer")
    func cancelledRead() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            var settings = settings
            settings.callTimeout = .seconds(8)
            settings.queueTimeout = .seconds(60)
            settings.poolSize = 1
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let reader = Task {
                try await database.read(scope: .gateway) { db in
                    begin.finish()
                    return try db.exists("SELECT 1 FROM pg_sleep(60)")
                }
            }
            for await _ in begun {}
            reader.cancel()
            await expectError(.cancelled) { try await reader.value }
            #expect(try await Self.numbers(database) == [])
        }
    }

    @Test("A statement ends at its deadline, and the next one gets a connection")
    func deadline() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            var settings = settings
            settings.callTimeout = .seconds(8)
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            // A read is ended by the server, a write by the gateway.
            await expectError(.storeUnavailable, "in time") {
                try await database.read(scope: .gateway) { try $0.exists("SELECT 1 FROM pg_sleep(60)") }
            }
            await expectError(.storeUnavailable, "in time") {
                try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                    try db.exists("SELECT 1 FROM pg_sleep(60)")
                }
            }
            #expect(try await Self.numbers(database) == [])
        }
    }

    @Test("A statement is prepared once, and prepared statements don't accumulate")
    func prepared() async throws {
        try await withPostgreSQLDatabase { database in
            let counts = try await database.read(scope: .gateway) { db in
                try (0..<600)
                    .map { number -> Int in
                        _ = try db.exists("SELECT \(number)")
                        _ = try db.exists("SELECT \(number)")
                        return try db.first("SELECT count(*) FROM pg_prepared_statements") { try $0.int(0) } ?? 0
                    }
            }
            #expect((counts.last ?? 0) - (counts.first ?? 0) == 599)
            let later = try await database.read(scope: .gateway) { db in
                try db.first("SELECT count(*) FROM pg_prepared_statements") { try $0.int(0) }
            }
            #expect((later ?? 0) < 10)
        }
    }

    @Test("The database's time is the clock's, not the transaction's, in every scope", arguments: ["acme", nil])
    func time(tenant: String?) async throws {
        try await withPostgreSQLDatabase { database in
            let scope = tenant.map { SQLScope.tenant($0) } ?? .gateway
            let clock = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
            let times = try await database.read(scope: scope) { db in
                try [clock, "gateway_time()", clock]
                    .map { expression in try db.first("SELECT \(expression)") { try $0.int64(0) } ?? 0 }
            }
            #expect(times == times.sorted())
        }
    }
}
