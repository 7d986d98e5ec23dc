import Foundation
import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

struct SQLiteReadOnlyDatabaseTests {
    private let fixtures = AuditFixtures()

    private func verdict(_ path: String, isLive: Bool) async throws -> AuditVerifier.Verdict {
        let database = try SQLiteReadOnlyDatabase(path: path)
        let reader = SQLAuditStore(database: database)
        let verdict = try await AuditVerifier(store: reader, sealer: self.fixtures.sealer).verify(isLive: isLive)
        try database.close()
        return verdict
    }

    @Test("A store that nobody serves is verified without a trace")
    func restingStore() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gate way?#%41.db"
            let database = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: database), writers: 2, recordsEach: 20)
            try database.close()

            let before = try contents(of: directory)
            let verdict = try await self.verdict(path, isLive: false)
            #expect(verdict == .intact(records: 40))
            #expect(try contents(of: directory) == before)
        }
    }

    @Test("A live store is verified while it is written")
    func liveStore() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write((0..<20).map { AuditFixtures.record($0) }, to: &chain, in: store)
            #expect(try StoreLock.isHeld(at: path))
            let verdict = try await self.verdict(path, isLive: true)
            #expect(verdict == .intact(records: 20))
            let verdict2 = try await self.verdict(path, isLive: false)
            #expect(verdict2 == .unclean(writer: 1, records: 20))

            // A reader that stays open sees what is written later and hinders nobody.
            let open = try SQLiteReadOnlyDatabase(path: path)
            let reader = SQLAuditStore(database: open)
            let stored = try await reader.records(of: 1, after: 0, limit: 100)
            #expect(stored.count == 20)
            try await self.fixtures.write((20..<30).map { AuditFixtures.record($0) }, to: &chain, in: store)
            let stored2 = try await reader.records(of: 1, after: 0, limit: 100)
            #expect(stored2.count == 30)
            try open.close()
            try database.close()
            let verdict3 = try await self.verdict(path, isLive: false)
            #expect(verdict3 == .unclean(writer: 1, records: 30))
        }
    }

    @Test("A store whose server was killed is verified with everything that was committed")
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
            // What a killed server leaves: the file and its log, without the memory map's file.
            let copy = directory + "/copy.db"
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
            let before = try contents(of: directory)
            let verdict = try await self.verdict(copy, isLive: false)
            #expect(verdict == .unclean(writer: 1, records: 20))
            let after = try contents(of: directory)
            #expect(after["copy.db"] == before["copy.db"])
            #expect(after["copy.db-wal"] == before["copy.db-wal"])
            try database.close()
        }
    }

    @Test("A missing file is said to be missing, and not made")
    func missingFile() async throws {
        try await withTemporaryDirectory { directory in
            let error = #expect(throws: GatewayError.self) {
                try SQLiteReadOnlyDatabase(path: directory + "/gateway.db")
            }
            #expect(error?.code == .notFound)
            let files = try contents(of: directory)
            #expect(files.isEmpty)
        }
    }

    @Test("An empty file is no store")
    func emptyFile() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            try Data().write(to: URL(fileURLWithPath: path))
            let error = #expect(throws: GatewayError.self) { try SQLiteReadOnlyDatabase(path: path) }
            #expect(error?.code == .invalid)
            #expect(try contents(of: directory) == ["gateway.db": Data()])
        }
    }

    @Test("A reader without locks notices that a server has started")
    func serverStartsMeanwhile() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let first = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: first), writers: 1, recordsEach: 5)
            try first.close()

            let resting = try SQLiteReadOnlyDatabase(path: path)
            let reader = SQLAuditStore(database: resting)
            let storedHeads = try await reader.heads()
            #expect(storedHeads.count == 1)
            let second = try SQLiteDatabase(path: path)
            let error = await #expect(throws: GatewayError.self) { try await reader.heads() }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.message.contains("try again") == true)
            try resting.close()
            try second.close()
        }
    }

    @Test("Nothing can be written through it")
    func refusesWrites() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            let reader = try SQLiteReadOnlyDatabase(path: path)
            let error = await #expect(throws: GatewayError.self) {
                try await reader.read { try $0.execute(sql: "DELETE FROM audit_heads") }
            }
            #expect(error?.code == .storeUnavailable)
            try reader.close()
            try database.close()
        }
    }
}
