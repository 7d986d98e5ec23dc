import Foundation
import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// The change of the master key in a real file.
struct SQLSecretStoreTests {
    /// Two master keys, and secrets in a store, sealed under the first.
    private struct Fixture {
        static let serverKey = Secret("the server key")

        let old: MasterKey
        let new: MasterKey
        let both: MasterKey

        init() throws {
            let (first, second) = (Secret(bytes: Self.bytes(1)), Secret(bytes: Self.bytes(2)))
            self.old = try #require(MasterKey(first))
            self.new = try #require(MasterKey(second))
            self.both = try #require(MasterKey(second, previous: first))
        }

        private static func bytes(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 32) }

        func fill(_ database: SQLiteDatabase, tenants: Int) async throws {
            let store = SQLDirectoryStore(database: database)
            _ = try await GatewaySecrets(store: SQLSecretStore(database: database), masterKey: self.old)
            for number in 0..<tenants {
                try await store.apply(.putTenant(try DirectoryFixtures.tenant("tenant-\(number)"), salt: [1]))
                try await store.apply(.putCredential(try self.credential(number, under: self.old)))
            }
        }

        func credential(_ number: Int, version: Int = 3, under key: MasterKey) throws -> StoredCredential {
            var credential = try DirectoryFixtures.credential("tenant-\(number)", version: version)
            credential.envelope = try Envelope(sealing: Self.serverKey, for: credential.context(salt: [1]), under: key)
            return credential
        }

        /// Rewraps everything, as the command does.
        func rewrap(_ database: SQLiteDatabase) async throws -> Int {
            let secrets = SQLSecretStore(database: database)
            let all = try await secrets.all()
            let plan = Rewrapping(all, under: self.both)
            #expect(plan.unopened.isEmpty)
            return try await secrets.apply(
                plan.exchanges,
                requireMasterKey: { [both] _ in try database.requireMasterKey(both.fingerprint) },
                record: { count in
                    var record = AuditFixtures.record(1, tenant: nil)
                    record.action = "credential.rewrap"
                    record.object = "\(count)"
                    return record
                },
                sealer: try self.sealer(all)
            )
        }

        func sealer(_ all: [SealedSecret]) throws -> AuditSealer {
            var own: [GatewaySecret: Envelope] = [:]
            for secret in all {
                if case .gateway(let name) = secret.place { own[name] = secret.envelope }
            }
            return AuditSealer(auditKey: try GatewaySecrets(stored: own, masterKey: self.both).auditKey)
        }

        /// Returns the key that opens every secret; one key must open them all.
        func keyOfEverything(in path: String) async throws -> String {
            let database = try SQLiteDatabase(path: path)
            let all = try await SQLSecretStore(database: database).all()
            let verdict = try await AuditVerifier(
                store: SQLAuditStore(database: database),
                sealer: try self.sealer(all)
            )
            .verify(isLive: false)
            let records = try await SQLAuditStore(database: database).page(AuditQuery(limit: 100)).records
            try database.close()
            let byOld = Rewrapping(all, under: self.old).currentCount
            let byNew = Rewrapping(all, under: self.new).currentCount
            #expect(byOld + byNew == all.count)
            // The record is there exactly when the change is.
            #expect(records.contains { $0.record.action == "credential.rewrap" } == (byNew > 0))
            // The tenants were put into the store without a gateway, which would have recorded them.
            if case .tampered(_, let reason) = verdict, !reason.hasSuffix("no record of its making") {
                Issue.record("\(verdict)")
            }
            return byOld == all.count ? "old" : byNew == all.count ? "new" : "\(byOld) old, \(byNew) new"
        }
    }

    @Test("A rewrap moves every secret to the new key, and is in the audit as a closed chain")
    func moves() async throws {
        let fixture = try Fixture()
        try await withStorePath { path in
            let database = try SQLiteDatabase(path: path)
            try await fixture.fill(database, tenants: 5)
            #expect(try await fixture.rewrap(database) == 8)
            #expect(try await fixture.rewrap(database) == 0)
            let page = try await SQLAuditStore(database: database).page(AuditQuery(limit: 100))
            #expect(page.records.map(\.record.action) == ["audit.closed", "credential.rewrap", "audit.opened"])
            #expect(page.records.map(\.record.object) == [nil, "8", nil])
            let credentials = try await SQLDirectoryStore(database: database).load().credentials
            #expect(credentials.count == 5)
            for credential in credentials {
                let opened = try credential.envelope.open(for: credential.context(salt: [1]), under: fixture.new)
                #expect(opened.revealBytes() == Fixture.serverKey.revealBytes())
            }
            try database.close()
            #expect(try await fixture.keyOfEverything(in: path) == "new")
        }
    }

    @Test("A rewrap erases the old wrapped keys from the store's files")
    func erased() async throws {
        let fixture = try Fixture()
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            try await fixture.fill(database, tenants: 40)
            let old = try await SQLSecretStore(database: database).all().map(\.envelope.wrappedKey)
            _ = try await fixture.rewrap(database)
            // The store is still open, so erasing does not depend on closing it.
            for (name, content) in try contents(of: directory) {
                for key in old { #expect(content.range(of: key) == nil, "\(name)") }
            }
            try database.close()
        }
    }

    @Test("After a crash at any point one key opens the whole store", arguments: [1, 60])
    func crash(tenants: Int) async throws {
        let fixture = try Fixture()
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let first = try SQLiteDatabase(path: path)
            try await fixture.fill(first, tenants: tenants)
            try first.close()
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            // The change first writes one transaction to the log, and a reader keeps it there.
            let database = try SQLiteDatabase(joining: path)
            let log = try await self.logOfRewrapping(database, path, fixture)
            try database.close()
            let after = try Data(contentsOf: URL(fileURLWithPath: path))
            func keyOfEverything(in file: Data, _ log: Data) async throws -> String {
                let crashed = directory + "/crash"
                try FileManager.default.createDirectory(atPath: crashed, withIntermediateDirectories: true)
                defer { try? FileManager.default.removeItem(atPath: crashed) }
                try file.write(to: URL(fileURLWithPath: crashed + "/gateway.db"))
                try log.write(to: URL(fileURLWithPath: crashed + "/gateway.db-wal"))
                return try await fixture.keyOfEverything(in: crashed + "/gateway.db")
            }

            let (header, frame) = (32, 4_096 + 24)
            let frames = (log.count - header) / frame
            #expect(frames > 3)
            var cuts = [0, 1, header]
            for number in 0..<frames {
                let start = header + number * frame
                cuts += [start + 1, start + 24, start + frame / 2, start + frame - 1, start + frame]
            }
            var keys: [String] = []
            for cut in cuts where cut <= log.count {
                let key = try await keyOfEverything(in: before, log.prefix(cut))
                #expect(["old", "new"].contains(key), "cut after \(cut) of \(log.count) bytes")
                keys.append(key)
            }
            // Old until the commit, new from there on.
            let change = keys.firstIndex(of: "new") ?? keys.endIndex
            #expect(keys[change...].allSatisfy { $0 == "new" })
            #expect(change > 3)
            #expect(keys.last == "new")

            // Any number of pages may already be copied to the file; the log still exists, since it is removed last.
            for pages in 0...after.count / 4_096 {
                let moved = after.prefix(pages * 4_096)
                let key = try await keyOfEverything(in: moved + before.dropFirst(moved.count), log)
                #expect(key == "new", "\(pages) pages")
            }
        }
    }

    /// Rewraps while a reader keeps the write-ahead log from being emptied, and returns the log.
    private func logOfRewrapping(_ database: SQLiteDatabase, _ path: String, _ fixture: Fixture) async throws -> Data {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let reader = try DatabaseQueue(path: path, configuration: configuration)
        // A transaction that has read keeps its snapshot until it ends.
        try await reader.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN")
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM credentials")
        }
        #expect(try await fixture.rewrap(database) > 0)
        let log = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
        try await reader.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        try reader.close()
        return log
    }

    @Test("A store served with another master key is left unchanged; one served with the same key is rewrapped")
    func served() async throws {
        let fixture = try Fixture()
        try await withStorePath { path in
            let serving = try SQLiteDatabase(path: path)
            try await fixture.fill(serving, tenants: 3)
            let joined = try SQLiteDatabase(joining: path)
            let before = try await SQLSecretStore(database: serving).all()
            // No key announced, as by an earlier version, or only the old key.
            for key in [nil, fixture.old] {
                if let key { try serving.announce(masterKey: key.fingerprint) }
                await expectError(.conflict) { try await fixture.rewrap(joined) }
                #expect(try await SQLSecretStore(database: serving).all() == before)
            }
            try serving.announce(masterKey: fixture.both.fingerprint)
            #expect(try await fixture.rewrap(joined) == 6)
            try joined.close()
            // The serving gateway is not disturbed.
            try await SQLDirectoryStore(database: serving)
                .apply(.putTenant(try DirectoryFixtures.tenant("late"), salt: [1]))
            try serving.close()
            #expect(try await fixture.keyOfEverything(in: path) == "new")
        }
    }

    @Test("A rewrap leaves secrets unchanged that were replaced since it read them")
    func replacedMeanwhile() async throws {
        let fixture = try Fixture()
        try await withSQLiteDatabase { database in
            try await fixture.fill(database, tenants: 2)
            let secrets = SQLSecretStore(database: database)
            let all = try await secrets.all()
            let plan = Rewrapping(all, under: fixture.both)
            let newer = try fixture.credential(0, version: 4, under: fixture.both)
            let again = try fixture.credential(1, version: 5, under: fixture.both)
            for credential in [newer, again] {
                try await SQLDirectoryStore(database: database).apply(.putCredential(credential))
            }
            let count = try await secrets.apply(
                plan.exchanges,
                requireMasterKey: { _ in },
                record: { _ in AuditFixtures.record(1) },
                sealer: try fixture.sealer(all)
            )
            #expect(count == 3)
            #expect(try await SQLDirectoryStore(database: database).load().credentials == [newer, again])
        }
    }

    @Test("While a command has joined a store, no gateway can begin to serve it")
    func joinedAlone() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            await expectError(.notFound) { try SQLiteDatabase(joining: path) }
            #expect(try contents(of: directory).isEmpty)
            try SQLiteDatabase(path: path).close()
            let joined = try SQLiteDatabase(joining: path)
            await expectError(.conflict) { try SQLiteDatabase(path: path) }
            try joined.close()
            try SQLiteDatabase(path: path).close()
        }
    }

    @Test("A command refuses a store of an earlier version")
    func earlierVersion() async throws {
        try await withStorePath { path in
            let database = try SQLiteDatabase(path: path)
            let last = try #require(SQLiteSchema.migrator.migrations.last)
            try await database.write { try $0.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '\(last)'") }
            try database.close()
            await expectError(.invalid, "earlier version") { try SQLiteDatabase(joining: path) }
        }
    }
}
