import Foundation
import GRDB
import GatewayCore
import GatewayStorage
import Testing

/// Changes a closed store with SQL of its own, and expects the verifier to name the first bad place.
struct AuditTamperingTests {
    private let fixtures = AuditFixtures()

    /// Runs a body with a store of three closed writers of six records each.
    private func withStore(_ body: (String) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: database), writers: 3, recordsEach: 6)
            try database.close()
            try await body(path)
        }
    }

    private func verdict(_ path: String) async throws -> AuditVerifier.Verdict {
        let database = try SQLiteReadOnlyDatabase(path: path)
        let reader = SQLAuditStore(database: database)
        let verdict = try await AuditVerifier(store: reader, sealer: self.fixtures.sealer).verify(isLive: false)
        try database.close()
        return verdict
    }

    /// The first bad place; `nil` when the verifier found none.
    private func firstBadPlace(_ path: String) async throws -> AuditPosition? {
        guard case .tampered(let position, _) = try await self.verdict(path) else { return nil }
        return position
    }

    private func execute(_ path: String, _ sql: String, _ arguments: StatementArguments = []) async throws {
        let queue = try DatabaseQueue(path: path)
        try await queue.write { db in
            try db.execute(sql: sql, arguments: arguments)
            #expect(db.totalChangesCount > 0, "the statement must have changed something")
        }
        // Back into the one file, so that the reader finds it as a server would leave it.
        try await queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try queue.close()
    }

    @Test("An untouched store is intact")
    func untouched() async throws {
        try await self.withStore { path in
            let verdict = try await self.verdict(path)
            #expect(verdict == .intact(records: 18))
        }
    }

    @Test("Any changed byte of a record is found", arguments: ["body", "hash"])
    func changedBytes(column: String) async throws {
        try await self.withStore { path in
            let queue = try DatabaseQueue(path: path)
            let place = "WHERE writer = 2 AND sequence = 3"
            let original = try #require(
                try await queue.read { try Data.fetchOne($0, sql: "SELECT \(column) FROM audit_records \(place)") }
            )
            let verifier = { [fixtures] in
                let database = try SQLiteReadOnlyDatabase(path: path)
                let reader = SQLAuditStore(database: database)
                let verdict = try await AuditVerifier(store: reader, sealer: fixtures.sealer).verify(isLive: false)
                try database.close()
                return verdict
            }
            for index in original.indices {
                for mask in [0x01, 0x20, 0x80] as [UInt8] {
                    var changed = original
                    changed[index] ^= mask
                    let bytes = changed
                    try await queue.write { db in
                        try db.execute(sql: "UPDATE audit_records SET \(column) = ? \(place)", arguments: [bytes])
                    }
                    guard case .tampered(let position, _) = try await verifier() else {
                        Issue.record("byte \(index) of \(column) with mask \(mask) was overlooked")
                        continue
                    }
                    #expect(position == AuditPosition(writer: 2, sequence: 3), "byte \(index)")
                }
            }
            try await queue.write { db in
                try db.execute(sql: "UPDATE audit_records SET \(column) = ? \(place)", arguments: [original])
            }
            let verdict = try await verifier()
            #expect(verdict == .intact(records: 18))
            try queue.close()
        }
    }

    @Test(
        "A record's other columns can't be changed unnoticed",
        arguments: [
            "time = time + 1", "time = -time", "tenant_uid = 1",
            "tenant = 'acmf'", "tenant = NULL", "tenant = ''", "tenant = tenant || char(0)", "tenant = '7'",
            "tenant = CAST(x'61636DFF' AS TEXT)", "sequence = sequence + 100", "writer = 3, sequence = 100",
            "body = x''", "body = CAST(body || x'00' AS BLOB)", "hash = x''",
        ]
    )
    func changedColumns(assignment: String) async throws {
        try await self.withStore { path in
            try await self.execute(path, "UPDATE audit_records SET \(assignment) WHERE writer = 2 AND sequence = 3")
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 2, sequence: 3))
        }
    }

    @Test("A page of the file that can't be read is told by the first record on it")
    func damagedPage() async throws {
        try await self.withStore { path in
            let queue = try DatabaseQueue(path: path)
            let hash = try #require(
                try await queue.read {
                    try Data.fetchOne($0, sql: "SELECT hash FROM audit_records WHERE writer = 1 AND sequence = 1")
                }
            )
            _ = try await queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try queue.close()
            var file = try Data(contentsOf: URL(filePath: path))
            let place = try #require(file.range(of: hash)).lowerBound
            let pageSize = Int(file[16]) << 8 | Int(file[17])
            // What kind of page it is stands in its first byte; this is none.
            file[place / pageSize * pageSize] = 0xFF
            try file.write(to: URL(filePath: path))
            let verdict = try await self.verdict(path)
            let reason = "the store's file is damaged here"
            #expect(verdict == .tampered(AuditPosition(writer: 1, sequence: 1), reason: reason))
        }
    }

    @Test("A missing record is found", arguments: 1...3, [1, 3, 6])
    func deletedRecord(writer: Int, sequence: Int) async throws {
        try await self.withStore { path in
            try await self.execute(
                path,
                "DELETE FROM audit_records WHERE writer = ? AND sequence = ?",
                [writer, sequence]
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: writer, sequence: sequence))
        }
    }

    @Test("Records that changed places are found")
    func swappedRecords() async throws {
        try await self.withStore { path in
            try await self.execute(
                path,
                """
                UPDATE audit_records SET (time, tenant, tenant_uid, body, hash) = (
                    SELECT time, tenant, tenant_uid, body, hash FROM (SELECT * FROM audit_records) AS other
                    WHERE other.writer = 2 AND other.sequence = 7 - audit_records.sequence
                ) WHERE writer = 2 AND sequence IN (2, 5)
                """
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 2, sequence: 2))
        }
    }

    @Test("Chains that changed writers are found")
    func swappedWriters() async throws {
        try await self.withStore { path in
            try await self.execute(
                path,
                """
                UPDATE audit_records SET writer = -writer WHERE writer IN (1, 2);
                UPDATE audit_records SET writer = 3 + writer WHERE writer < 0;
                UPDATE audit_heads SET writer = -writer WHERE writer IN (1, 2);
                UPDATE audit_heads SET writer = 3 + writer WHERE writer < 0
                """
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 1, sequence: 1))
        }
    }

    @Test("A record added to a chain's end is found")
    func addedAtTheEnd() async throws {
        try await self.withStore { path in
            // Even one that is chained as it should be: whoever can write can also hash.
            let database = try SQLiteReadOnlyDatabase(path: path)
            var chain = try #require(try await SQLAuditStore(database: database).heads().dropFirst().first).chain
            try database.close()
            let forged = chain.append(AuditFixtures.record(99))
            try await self.execute(
                path,
                """
                INSERT INTO audit_records (writer, sequence, time, tenant, tenant_uid, body, hash)
                SELECT writer, 7, time, tenant, tenant_uid, body, ? FROM audit_records WHERE writer = 2 AND sequence = 6
                """,
                [Data(forged.hash)]
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 2, sequence: 7))
        }
    }

    @Test("Records of a writer that never was are found")
    func addedWriter() async throws {
        try await self.withStore { path in
            try await self.execute(
                path,
                """
                INSERT INTO audit_records (writer, sequence, time, tenant, tenant_uid, body, hash)
                SELECT 9, sequence, time, tenant, tenant_uid, body, hash FROM audit_records WHERE writer = 1
                """
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 9, sequence: 1))
        }
    }

    @Test(
        "A writer that is gone is found",
        arguments: [
            "DELETE FROM audit_records WHERE writer = 2; DELETE FROM audit_heads WHERE writer = 2",
            "DELETE FROM audit_records WHERE writer = 2",
            "DELETE FROM audit_heads WHERE writer = 2",
        ]
    )
    func droppedWriter(statements: String) async throws {
        try await self.withStore { path in
            try await self.execute(path, statements)
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 2, sequence: 1))
        }
    }

    @Test("A chain cut short together with its head is found by the seal")
    func truncated() async throws {
        try await self.withStore { path in
            try await self.execute(
                path,
                """
                DELETE FROM audit_records WHERE writer = 3 AND sequence > 4;
                UPDATE audit_heads SET sequence = 4,
                    hash = (SELECT hash FROM audit_records WHERE writer = 3 AND sequence = 4)
                WHERE writer = 3
                """
            )
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 3, sequence: 4))
        }
    }

    @Test(
        "A head can't be changed unnoticed",
        arguments: [
            ("sequence = 7", 7), ("sequence = 5", 5), ("hash = zeroblob(32)", 6), ("hash = x''", 6),
            ("seal = zeroblob(32)", 6), ("seal = x''", 6), ("state = 'open'", 6), ("state = 'recovered'", 6),
            ("state = 'clozed'", 6), ("state = ''", 6),
        ]
    )
    func changedHead(assignment: String, sequence: Int) async throws {
        try await self.withStore { path in
            try await self.execute(path, "UPDATE audit_heads SET \(assignment) WHERE writer = 2")
            let place = try await self.firstBadPlace(path)
            #expect(place == AuditPosition(writer: 2, sequence: sequence))
        }
    }

    @Test("A last writer that did not close is clean while it lives and unclean afterwards")
    func openHead() async throws {
        try await withTemporaryDirectory { directory in
            let database = try SQLiteDatabase(path: directory + "/gateway.db")
            let store = SQLAuditStore(database: database)
            try await self.fixtures.fill(store, writers: 2, recordsEach: 6, lastState: .open)
            let verifier = AuditVerifier(store: store, sealer: self.fixtures.sealer)
            let verdict = try await verifier.verify(isLive: true)
            #expect(verdict == .intact(records: 12))
            let verdict2 = try await verifier.verify(isLive: false)
            #expect(verdict2 == .unclean(writer: 2, records: 12))
            try database.close()
        }
    }
}
