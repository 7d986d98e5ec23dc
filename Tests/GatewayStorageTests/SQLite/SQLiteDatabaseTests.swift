import Foundation
import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

struct SQLiteDatabaseTests {
    private let fixtures = AuditFixtures()

    @Test("Only the owner may read a new database and its new directory")
    func permissionsOfNewFiles() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/a/b/gateway.db"
            let database = try SQLiteDatabase(path: path)
            #expect(try permissions(directory + "/a") == 0o700)
            #expect(try permissions(directory + "/a/b") == 0o700)
            for suffix in ["", "-wal", "-shm", ".lock"] {
                #expect(try permissions(path + suffix) == 0o600, "\(suffix)")
            }
            try database.close()
        }
    }

    @Test("Opening a database that others could read restricts it to its owner")
    func permissionsOfOldFile() async throws {
        try await withStorePath { path in
            try SQLiteDatabase(path: path).close()
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            let database = try SQLiteDatabase(path: path)
            #expect(try permissions(path) == 0o600)
            try database.close()
        }
    }

    @Test("The settings for durability and erasure are in force")
    func settings() async throws {
        try await withSQLiteDatabase { database in
            let written = try await database.write { db in
                try ["journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete"]
                    .map {
                        try String.fetchOne(db, sql: "PRAGMA \($0)")
                    }
            }
            #expect(written == ["wal", "2", "1", "2000", "1"])
        }
    }

    @Test("A second server of the same file is refused until the first has closed")
    func secondServer() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let first = try SQLiteDatabase(path: path)
            try FileManager.default.createSymbolicLink(atPath: directory + "/other.db", withDestinationPath: path)
            for name in [path, directory + "/other.db", directory + "/./gateway.db"] {
                await expectError(.conflict, "serves this store") { try SQLiteDatabase(path: name) }
            }
            // The refusals don't disturb the first server.
            let store = SQLDirectoryStore(database: first)
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            #expect(try StoreLock.isHeld(at: path))

            try first.close()
            #expect(try !StoreLock.isHeld(at: path))
            let second = try SQLiteDatabase(path: path)
            #expect(try await SQLDirectoryStore(database: second).load().tenants.count == 1)
            try second.close()
        }
    }

    @Test("Reopening a database changes no schema and keeps its rows")
    func migrationsAreIdempotent() async throws {
        try await withStorePath { path in
            var schemas: [[String]] = []
            for round in 0..<3 {
                let database = try SQLiteDatabase(path: path)
                let store = SQLDirectoryStore(database: database)
                #expect(try await store.load().tenants.count == round)
                try await store.apply(.putTenant(try DirectoryFixtures.tenant("tenant-\(round)"), salt: [1]))
                schemas.append(
                    try await database.read { db in
                        try String.fetchAll(db, sql: "SELECT identifier FROM grdb_migrations ORDER BY 1")
                            + String.fetchAll(db, sql: "SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY 1")
                    }
                )
                try database.close()
            }
            #expect(schemas[0].starts(with: ["v100"]))
            #expect(schemas[1] == schemas[0])
            #expect(schemas[2] == schemas[0])
        }
    }

    @Test(
        "A database of a later version, or of a build from before the first release, is refused",
        arguments: [("v999-of-the-future", "later version"), ("v001", "unreleased build of the gateway (v001)")]
    )
    func unknownMigration(name: String, reason: String) async throws {
        try await withStorePath { path in
            try SQLiteDatabase(path: path).close()
            let queue = try DatabaseQueue(path: path)
            try await queue.write { db in
                try db.execute(sql: "INSERT INTO grdb_migrations VALUES (?)", arguments: [name])
            }
            try queue.close()
            let openings: [() throws -> Void] = [
                { _ = try SQLiteDatabase(path: path) }, { _ = try SQLiteDatabase(joining: path) },
                { _ = try SQLiteReadOnlyDatabase(path: path) },
            ]
            for open in openings {
                await expectError(.invalid, reason) { try open() }
            }
            #expect(try !StoreLock.isHeld(at: path))
        }
    }

    @Test("A foreign file is refused and left unchanged")
    func foreignFile() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/notes.db"
            let queue = try DatabaseQueue(path: path)
            try await queue.write { try $0.execute(sql: "CREATE TABLE notes (text); INSERT INTO notes VALUES ('x')") }
            try queue.close()
            let text = directory + "/readme.txt"
            try Data(repeating: UInt8(ascii: "x"), count: 5_000).write(to: URL(fileURLWithPath: text))

            for foreign in [path, text] {
                let before = try Data(contentsOf: URL(fileURLWithPath: foreign))
                let openings: [() throws -> Void] = [
                    { _ = try SQLiteDatabase(path: foreign) }, { _ = try SQLiteReadOnlyDatabase(path: foreign) },
                ]
                for open in openings {
                    let error = #expect(throws: GatewayError.self) { try open() }
                    #expect(error?.code == .invalid)
                    #expect(error?.message == "The file is not a store of the gateway")
                }
                #expect(try Data(contentsOf: URL(fileURLWithPath: foreign)) == before)
            }
        }
    }

    @Test("A full disk refuses a commit as a whole, and accepts it once it fits")
    func fullDisk() async throws {
        try await withSQLiteDatabase { database in
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write((0..<10).map { AuditFixtures.record($0) }, to: &chain, in: store)
            let before = try await store.heads()

            try await database.write { db in
                let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                try db.execute(sql: "PRAGMA max_page_count = \(pages + 3)")
            }
            var longer = chain
            let tenants = ["acme", "newcomer"]
            let records = (10..<1_000).map { longer.append(AuditFixtures.record($0, tenant: tenants[$0 % 2])) }
            let head = self.fixtures.sealer.head(of: longer, state: .open)
            for _ in 0..<2 {
                let error = await #expect(throws: GatewayError.self) { try await store.append(records, head: head) }
                #expect(error?.code == .storeUnavailable)
                #expect(error?.message == "The store's disk is full")
            }
            #expect(try await store.heads() == before)
            #expect(try await store.records(of: 1, after: 0, limit: 2_000).count == 10)
            var query = AuditQuery(limit: 1_000)
            query.tenant = "newcomer"
            let page = try await store.page(query)
            #expect(page.records.isEmpty)

            try await database.write { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
            try await store.append(records, head: head)
            let verifier = AuditVerifier(store: store, sealer: self.fixtures.sealer)
            #expect(try await verifier.verify(isLive: true) == .intact(records: 1_000))
            #expect(try await store.page(query).records.count == 495)
        }
    }

    @Test("A database that can't be written refuses changes and still answers reads")
    func readOnlyDisk() async throws {
        try await withSQLiteDatabase { database in
            let store = SQLDirectoryStore(database: database)
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            try await database.write { try $0.execute(sql: "PRAGMA query_only = ON") }
            let error = await #expect(throws: GatewayError.self) {
                try await store.apply(.putTenant(try DirectoryFixtures.tenant("other"), salt: [1]))
            }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.message == "The store can't be written")
            #expect(try await store.load().tenants.count == 1)
        }
    }

    @Test("Calls of a closed database fail with an error")
    func closed() async throws {
        try await withTemporaryDirectory { directory in
            let database = try SQLiteDatabase(path: directory + "/gateway.db")
            let store = SQLDirectoryStore(database: database)
            try database.close()
            await expectError(.storeUnavailable) { try await store.load() }
            await expectError(.storeUnavailable) {
                try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            }
        }
    }

    @Test("Closing a database leaves only one file and its lock")
    func closingTidiesUp() async throws {
        try await withTemporaryDirectory { directory in
            let database = try SQLiteDatabase(path: directory + "/gateway.db")
            let store = SQLAuditStore(database: database)
            try await self.fixtures.fill(store, writers: 2, recordsEach: 5)
            _ = try await store.heads()
            try database.close()
            #expect(try contents(of: directory).keys.sorted() == ["gateway.db", "gateway.db.lock"])
        }
    }

    @Test("A deleted tenant's salt and secrets are erased from all files")
    func erasure() async throws {
        try await withTemporaryDirectory { directory in
            let database = try SQLiteDatabase(path: directory + "/gateway.db")
            let store = SQLDirectoryStore(database: database)
            let salt = Array("a salt that nothing else holds".utf8)
            var credential = try DirectoryFixtures.credential()
            let replaced = Data("the first sealed secret".utf8)
            let sealed = Data("the second sealed secret".utf8)
            func isAnywhere(_ bytes: some Sequence<UInt8>) throws -> Bool {
                try contents(of: directory).values.contains { $0.range(of: Data(bytes)) != nil }
            }

            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: salt))
            credential.envelope = Envelope(wrappedKey: Data([1]), sealed: replaced)
            try await store.apply(.putCredential(credential))
            #expect(try isAnywhere(replaced))
            credential.envelope = Envelope(wrappedKey: Data([1]), sealed: sealed)
            credential.version = 2
            try await store.apply(.putCredential(credential))
            #expect(try isAnywhere(salt))
            #expect(try isAnywhere(sealed))
            #expect(try !isAnywhere(replaced))

            try await store.apply(.deleteTenant(credential.tenant))
            #expect(try !isAnywhere(salt))
            #expect(try !isAnywhere(sealed))
            try database.close()
        }
    }

    @Test("A deleted tenant's audit records stay")
    func auditOutlivesTenant() async throws {
        try await withSQLiteDatabase { database in
            let directory = SQLDirectoryStore(database: database)
            let audit = SQLAuditStore(database: database)
            let tenant = try DirectoryFixtures.tenant()
            try await directory.apply(.putTenant(tenant, salt: [1]))
            try await self.fixtures.fill(audit, writers: 1, recordsEach: 5)
            try await directory.apply(.deleteTenant(tenant.id))
            var query = AuditQuery(limit: 10)
            query.tenant = tenant.id.text
            #expect(try await audit.page(query).records.count == 5)
        }
    }
}
