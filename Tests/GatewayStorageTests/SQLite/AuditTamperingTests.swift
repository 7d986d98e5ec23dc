import Foundation
import GRDB
import GatewayCore
import GatewayStorage
import Testing

/// Changes a closed store with SQL, and expects the verifier to name the first bad position.
struct AuditTamperingTests {
    /// A change of the store, and the first bad position that it causes.
    struct Change: Sendable {
        let statements: String
        let place: AuditChain.Position

        init(_ statements: String, _ writer: Int, _ sequence: Int) {
            self.statements = statements
            self.place = AuditChain.Position(writer: writer, sequence: sequence)
        }
    }

    private let fixtures = AuditFixtures()

    /// Runs a body with a store of three closed writers of six records each.
    private func withStore(_ body: (String) async throws -> Void) async throws {
        try await withStorePath { path in
            let database = try SQLiteDatabase(path: path)
            try await self.fixtures.fill(SQLAuditStore(database: database), writers: 3, recordsEach: 6)
            try database.close()
            try await body(path)
        }
    }

    /// The first bad position; `nil` if the verifier found none.
    private func firstBadPlace(_ path: String) async throws -> AuditChain.Position? {
        guard case .tampered(let position, _) = try await self.fixtures.verdict(on: path) else { return nil }
        return position
    }

    private func execute(_ path: String, _ sql: String, _ arguments: StatementArguments = []) async throws {
        let queue = try DatabaseQueue(path: path)
        try await queue.write { db in
            try db.execute(sql: sql, arguments: arguments)
            #expect(db.totalChangesCount > 0, "the statement must have changed something")
        }
        // Copies the log back into the file, as a server that closes does.
        try await queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try queue.close()
    }

    @Test("An unreadable page of the file is reported at its first record")
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
            // The first byte of a page is its type, and this type does not exist.
            file[place / pageSize * pageSize] = 0xFF
            try file.write(to: URL(filePath: path))
            let verdict = try await self.fixtures.verdict(on: path)
            let reason = "the store's file is damaged here"
            #expect(verdict == .tampered(AuditChain.Position(writer: 1, sequence: 1), reason: reason))
        }
    }

    @Test("A record added to a chain's end is found")
    func addedAtTheEnd() async throws {
        try await self.withStore { path in
            // Even one with a correct hash: an attacker who can write can also hash.
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
            #expect(try await self.firstBadPlace(path) == AuditChain.Position(writer: 2, sequence: 7))
        }
    }

    private static let columns = [
        "time = time + 1", "time = -time", "tenant_uid = 1", "tenant = 'acmf'", "tenant = NULL", "tenant = ''",
        "tenant = tenant || char(0)", "tenant = '7'", "tenant = CAST(x'61636DFF' AS TEXT)",
        "sequence = sequence + 100", "writer = 3, sequence = 100", "body = x''", "body = CAST(body || x'00' AS BLOB)",
        "hash = x''",
    ]
    .map { Change("UPDATE audit_records SET \($0) WHERE writer = 2 AND sequence = 3", 2, 3) }

    private static let missing = [(1, 1), (1, 3), (1, 6), (2, 1), (2, 3), (2, 6), (3, 1), (3, 3), (3, 6)]
        .map { Change("DELETE FROM audit_records WHERE writer = \($0) AND sequence = \($1)", $0, $1) }

    private static let heads = [
        ("sequence = 7", 7), ("sequence = 5", 5), ("hash = zeroblob(32)", 6), ("hash = x''", 6),
        ("seal = zeroblob(32)", 6), ("seal = x''", 6), ("state = 'open'", 6), ("state = 'recovered'", 6),
        ("state = 'clozed'", 6), ("state = ''", 6),
    ]
    .map { Change("UPDATE audit_heads SET \($0) WHERE writer = 2", 2, $1) }

    private static let chains = [
        Change("DELETE FROM audit_records WHERE writer = 2; DELETE FROM audit_heads WHERE writer = 2", 2, 1),
        Change("DELETE FROM audit_records WHERE writer = 2", 2, 1),
        Change("DELETE FROM audit_heads WHERE writer = 2", 2, 1),
        // Two records of a chain swapped.
        Change(
            """
            UPDATE audit_records SET (time, tenant, tenant_uid, body, hash) = (
                SELECT time, tenant, tenant_uid, body, hash FROM (SELECT * FROM audit_records) AS other
                WHERE other.writer = 2 AND other.sequence = 7 - audit_records.sequence
            ) WHERE writer = 2 AND sequence IN (2, 5)
            """,
            2,
            2
        ),
        // Records of two writers swapped.
        Change(
            """
            UPDATE audit_records SET (time, tenant, tenant_uid, body, hash) = (
                SELECT time, tenant, tenant_uid, body, hash FROM (SELECT * FROM audit_records) AS other
                WHERE other.writer = 4 - audit_records.writer AND other.sequence = 2
            ) WHERE writer IN (1, 3) AND sequence = 2
            """,
            1,
            2
        ),
        // A record copied over the next one.
        Change(
            """
            UPDATE audit_records SET (time, tenant, tenant_uid, body) = (
                SELECT time, tenant, tenant_uid, body FROM (SELECT * FROM audit_records) AS other
                WHERE other.writer = 2 AND other.sequence = 3
            ) WHERE writer = 2 AND sequence = 4
            """,
            2,
            4
        ),
        // A record deleted, and the gap closed.
        Change(
            """
            DELETE FROM audit_records WHERE writer = 2 AND sequence = 3;
            UPDATE audit_records SET sequence = -sequence WHERE writer = 2 AND sequence > 3;
            UPDATE audit_records SET sequence = -sequence - 1 WHERE writer = 2 AND sequence < 0
            """,
            2,
            3
        ),
        // The chains of two writers swapped.
        Change(
            """
            UPDATE audit_records SET writer = -writer WHERE writer IN (1, 2);
            UPDATE audit_records SET writer = 3 + writer WHERE writer < 0;
            UPDATE audit_heads SET writer = -writer WHERE writer IN (1, 2);
            UPDATE audit_heads SET writer = 3 + writer WHERE writer < 0
            """,
            1,
            1
        ),
        // Records of a writer that does not exist.
        Change(
            """
            INSERT INTO audit_records (writer, sequence, time, tenant, tenant_uid, body, hash)
            SELECT 9, sequence, time, tenant, tenant_uid, body, hash FROM audit_records WHERE writer = 1
            """,
            9,
            1
        ),
        // A whole chain copied, to the next writer's number and to a later one.
        Self.copy(to: 4),
        Self.copy(to: 5),
        // A chain cut short together with its head.
        Change(
            """
            DELETE FROM audit_records WHERE writer = 3 AND sequence > 4;
            UPDATE audit_heads SET sequence = 4,
                hash = (SELECT hash FROM audit_records WHERE writer = 3 AND sequence = 4)
            WHERE writer = 3
            """,
            3,
            4
        ),
    ]

    private static func copy(to writer: Int) -> Change {
        Change(
            """
            INSERT INTO audit_records (writer, sequence, time, tenant, tenant_uid, body, hash)
            SELECT \(writer), sequence, time, tenant, tenant_uid, body, hash FROM audit_records WHERE writer = 1;
            INSERT INTO audit_heads (writer, sequence, hash, state, seal)
            SELECT \(writer), sequence, hash, state, seal FROM audit_heads WHERE writer = 1
            """,
            4,
            1
        )
    }

    static let changes = Self.columns + Self.missing + Self.heads + Self.chains

    @Test("Every other change is found at its first bad position", arguments: Self.changes)
    func changed(change: Change) async throws {
        try await self.withStore { path in
            try await self.execute(path, change.statements)
            #expect(try await self.firstBadPlace(path) == change.place)
        }
    }
}
