import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// Copying a store from SQLite to PostgreSQL.
struct StoreCopyTests {
    private let masterKey: MasterKey

    init() throws {
        self.masterKey = try #require(MasterKey(Secret(bytes: [UInt8](repeating: 7, count: 32))))
    }

    /// Fills a store as a cleanly stopped gateway leaves it, with rows in every table that one gateway writes.
    private func fill(_ path: String, records: Int = 2_345, state: AuditHead.State = .closed) async throws {
        let database = try SQLiteDatabase(path: path)
        let store = SQLSecretStore(database: database)
        let secrets = try await GatewaySecrets(store: store, masterKey: self.masterKey)
        let directory = SQLDirectoryStore(database: database, sealer: RowSealer(keyPepper: secrets.keyPepper))
        let tenant = try DirectoryFixtures.tenant()
        try await directory.apply(.putTenant(tenant, salt: [0, 1, 255]))
        try await directory.apply(.putCredential(try DirectoryFixtures.credential()))
        try await directory.apply(.addKey(try DirectoryFixtures.key()))
        var chain = AuditChain(writer: 1)
        let chained = (0..<records).map { chain.append(AuditFixtures.record($0)) }
        let head = AuditSealer(auditKey: secrets.auditKey).head(of: chain, state: state)
        try await SQLAuditStore(database: database).append(chained, head: head)
        try await database.write { db in
            try db.execute(
                sql: """
                    INSERT INTO limits VALUES ('acme', 'tenant', '[]');
                    INSERT INTO device_groups VALUES ('acme', 'g', 'acme.g', 'APA91', '["a","ü"]', 1, 3, 5);
                    INSERT INTO device_group_keys VALUES ('acme', 'APA91', 'g', 3, 0);
                    INSERT INTO retired_token_feed VALUES (1, 9);
                    INSERT INTO retired_token_counts VALUES ('acme', 5, 20, 3);
                    INSERT INTO retired_tokens VALUES ('acme', -5, 'token', 'fed', 1, 2, 3, x'00ff', 4, 9, 5);
                    INSERT INTO retired_tokens
                    VALUES ('acme', 9223372036854775807, 'token', 'fed', 1, 2, 3, x'', 4, NULL, 5);
                    INSERT INTO idempotency_records
                    VALUES (41, 'acme', 'r', x'01', x'02', 'm', 1, 2, 1, 'o', 0, 3, x'00');
                    INSERT INTO idempotency_usage VALUES ('acme', 1, 3);
                    INSERT INTO idempotency_mark VALUES (1, 7, 8);
                    """
            )
        }
        try database.close()
    }

    /// Runs a body with a filled store's path, and the owner's settings for a migrated, empty database.
    private func withStores(
        state: AuditHead.State = .closed,
        _ body: (_ path: String, _ target: PostgreSQLSettings) async throws -> Void
    ) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            try await withStorePath { path in
                try await self.fill(path, state: state)
                var owner = settings
                owner.url = settings.url.replacing("user=gateway", with: "user=owner")
                try await body(path, owner)
            }
        }
    }

    @discardableResult
    private func copy(
        _ path: String,
        _ target: PostgreSQLSettings,
        by masterKey: MasterKey? = nil,
        isDryRun: Bool = false
    ) async throws -> StoreCopy.Outcome {
        let source = try SQLiteDatabase(joining: path)
        defer { try? source.close() }
        let copy = StoreCopy(
            from: source,
            to: target,
            masterKey: masterKey ?? self.masterKey,
            isDryRun: isDryRun
        )
        return try await copy.run { _, _, _ in }
    }

    /// All rows of a table, in the same order for both databases.
    private func rows(of table: String, in database: any SQLDatabase) async throws -> [String] {
        try await database.read(.scan, scope: .gateway) { db in
            try db.rows("SELECT * FROM \(table)") { row in "\(row.names) \(row.values)" }.sorted()
        }
    }

    /// The number of rows in all of the target's tables, as a replica sees them.
    private func count(in target: PostgreSQLSettings) async throws -> Int {
        var gateway = target
        gateway.url = target.url.replacing("user=owner", with: "user=gateway")
        let database = try await PostgreSQLDatabase(gateway)
        defer { database.close() }
        var count = 0
        for table in SQLSchema.tables where table != "store_epoch" {
            count += try await self.rows(of: table, in: database).count
        }
        return count
    }

    @Test("The list of tables matches the schema", arguments: StoreKind.available.filter { $0 != .upgradedPostgreSQL })
    func tables(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let names = try await database.read(scope: .gateway) { db -> [String] in
                switch kind {
                case .sqlite:
                    try db.rows(
                        """
                        SELECT name FROM sqlite_schema
                        WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'grdb_%'
                        """
                    ) { try $0.text(0) }
                case .postgresql, .upgradedPostgreSQL:
                    try db.rows(
                        """
                        SELECT tablename FROM pg_tables
                        WHERE schemaname = current_schema() AND tablename <> 'gateway_migrations'
                        """
                    ) { try $0.text(0) }
                }
            }
            #expect(names.sorted() == SQLSchema.tables.sorted())
        }
    }

    @Test("A copy has every row of the source, continues its ids, and can't be repeated")
    func everything() async throws {
        try await self.withStores { path, target in
            let outcome = try await self.copy(path, target)
            #expect(outcome.tenants == 1)
            #expect(outcome.auditRecords == 2_345)
            let source = try SQLiteDatabase(path: path)
            let database = try await PostgreSQLDatabase(target)
            defer { database.close() }
            var count = 0
            for table in SQLSchema.tables where table != "store_epoch" {
                let rows = try await self.rows(of: table, in: source)
                #expect(try await self.rows(of: table, in: database) == rows, "\(table)")
                count += rows.count
            }
            try source.close()
            #expect(outcome.rows == count)
            let next = try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                try db.first("SELECT nextval(pg_get_serial_sequence('idempotency_records', 'id'))") { try $0.int(0) }
            }
            #expect(next == 42)
            await expectError(.conflict, "not empty: tenants") { try await self.copy(path, target) }
        }
    }

    @Test("A store that is being served or whose gateway ended uncleanly is not copied")
    func served() async throws {
        try await self.withStores { path, target in
            let serving = try SQLiteDatabase(path: path)
            await expectError(.conflict, "stop it first") { try await self.copy(path, target) }
            try serving.close()
            #expect(try await self.count(in: target) == 0)
        }
        try await self.withStores(state: .open) { path, target async throws in
            await expectError(.invalid, "ended uncleanly") { try await self.copy(path, target) }
            #expect(try await self.copy(path, target, isDryRun: true).auditRecords == 2_345)
            #expect(try await self.count(in: target) == 0)
        }
    }

    @Test("With another master key nothing is copied")
    func masterKey() async throws {
        try await self.withStores { path, target in
            let other = try #require(MasterKey(Secret(bytes: [UInt8](repeating: 8, count: 32))))
            await expectError(.invalid, "another master key") { try await self.copy(path, target, by: other) }
            #expect(try await self.count(in: target) == 0)
        }
    }

    @Test("The target stays empty if the audit was changed or if PostgreSQL rejects a value")
    func allOrNothing() async throws {
        try await self.withStores { path, target in
            try await self.change(path, "UPDATE audit_records SET time = time + 1 WHERE sequence = 1234")
            await #expect(throws: AuditVerifier.Verdict.self) { try await self.copy(path, target) }
            #expect(try await self.count(in: target) == 0)
            try await self.change(path, "UPDATE audit_records SET time = time - 1 WHERE sequence = 1234")
            try await self.change(path, "UPDATE device_groups SET members = 'a' || char(0)")
            await expectError(.invalid, "device_groups") { try await self.copy(path, target) }
            #expect(try await self.count(in: target) == 0)
            try await self.change(path, "UPDATE device_groups SET members = '[]'")
            try await self.copy(path, target)
        }
    }

    private func change(_ path: String, _ sql: String) async throws {
        let database = try SQLiteDatabase(path: path)
        try await database.write { db in try db.execute(sql: sql) }
        try database.close()
    }

    @Test("A copy needs a user who owns the tables, and a target without even a heartbeat")
    func target() async throws {
        try await self.withStores { path, target in
            var gateway = target
            gateway.url = target.url.replacing("user=owner", with: "user=gateway")
            await expectError(.invalid, "does not own") { try await self.copy(path, gateway) }
            let database = try await PostgreSQLDatabase(gateway)
            defer { database.close() }
            let heartbeat = "INSERT INTO replicas (id, started_at, seen_at, master_key) VALUES ('a', 0, 0, '')"
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in _ = try db.execute(heartbeat) }
            await expectError(.conflict, "not empty: replicas") { try await self.copy(path, target) }
        }
    }
}
