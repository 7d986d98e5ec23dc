import Foundation
import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

struct SQLiteReadOnlyDatabaseTests {
    private let fixtures = AuditFixtures()

    @Test("Verifying a store without a server changes no file")
    func restingStore() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gate way?#%41.db"
            let database = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: database), writers: 2, recordsEach: 20)
            try database.close()

            let before = try contents(of: directory)
            #expect(try await self.fixtures.verdict(on: path) == .intact(records: 40))
            #expect(try contents(of: directory) == before)
        }
    }

    @Test("A live store is verified while it is written")
    func liveStore() async throws {
        try await withStorePath { path in
            let database = try SQLiteDatabase(path: path)
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write((0..<20).map { AuditFixtures.record($0) }, to: &chain, in: store)
            #expect(try StoreLock.isHeld(at: path))
            #expect(try await self.fixtures.verdict(on: path, isLive: true) == .intact(records: 20))
            #expect(try await self.fixtures.verdict(on: path) == .unclean(writer: 1, records: 20))

            // A reader that stays open sees later writes and does not block them.
            let open = try SQLiteReadOnlyDatabase(path: path)
            let reader = SQLAuditStore(database: open)
            #expect(try await reader.records(of: 1, after: 0, limit: 100).count == 20)
            try await self.fixtures.write((20..<30).map { AuditFixtures.record($0) }, to: &chain, in: store)
            #expect(try await reader.records(of: 1, after: 0, limit: 100).count == 30)
            try open.close()
            try database.close()
            #expect(try await self.fixtures.verdict(on: path) == .unclean(writer: 1, records: 30))
        }
    }

    @Test("After a kill of its server, a store is verified with all committed records")
    func killedServer() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(
                SQLAuditStore(database: database),
                writers: 1,
                recordsEach: 20,
                lastState: .open
            )
            // As after a kill: the file and its log, without the shared-memory file.
            let copy = directory + "/copy.db"
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
            let before = try contents(of: directory)
            #expect(try await self.fixtures.verdict(on: copy) == .unclean(writer: 1, records: 20))
            let after = try contents(of: directory)
            #expect(after["copy.db"] == before["copy.db"])
            #expect(after["copy.db-wal"] == before["copy.db-wal"])
            try database.close()
        }
    }

    @Test("A missing file is reported as missing, and not created")
    func missingFile() async throws {
        try await withTemporaryDirectory { directory async throws in
            await expectError(.notFound) { try SQLiteReadOnlyDatabase(path: directory + "/gateway.db") }
            #expect(try contents(of: directory).isEmpty)
        }
    }

    @Test("An empty file is reported as a missing store and left unchanged")
    func emptyFile() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            try Data().write(to: URL(fileURLWithPath: path))
            await expectError(.notFound) { try SQLiteReadOnlyDatabase(path: path) }
            #expect(try contents(of: directory) == ["gateway.db": Data()])
        }
    }

    @Test("A reader without locks notices that a server has started meanwhile")
    func serverStartsMeanwhile() async throws {
        try await withStorePath { path in
            let first = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: first), writers: 1, recordsEach: 5)
            try first.close()

            let resting = try SQLiteReadOnlyDatabase(path: path)
            let reader = SQLAuditStore(database: resting)
            #expect(try await reader.heads().count == 1)
            let second = try SQLiteDatabase(path: path)
            await expectError(.storeUnavailable, "try again") { try await reader.heads() }
            try resting.close()
            try second.close()
        }
    }

    @Test("A read-only database refuses writes")
    func refusesWrites() async throws {
        try await withStorePath { path in
            let database = try SQLiteDatabase(path: path)
            let reader = try SQLiteReadOnlyDatabase(path: path)
            await expectError(.storeUnavailable) {
                try await reader.read { try $0.execute(sql: "DELETE FROM audit_heads") }
            }
            try reader.close()
            try database.close()
        }
    }
}
