import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

@Suite("Audit records that are missing from an index")
struct AuditIndexTests {
    enum Index: String, CaseIterable {
        case time = "audit_records_by_time"
        case tenant = "audit_records_by_tenant"

        /// The statement that creates the index without one record.
        func statement(without place: AuditChain.Position) -> String {
            let other = "NOT (writer = \(place.writer) AND sequence = \(place.sequence))"
            return switch self {
            case .time: "CREATE INDEX \(self.rawValue) ON audit_records (time, writer, sequence) WHERE \(other)"
            case .tenant:
                "CREATE INDEX \(self.rawValue) ON audit_records (tenant, tenant_uid, time, writer, sequence) "
                    + "WHERE tenant IS NOT NULL AND \(other)"
            }
        }
    }

    private static let count = 4_500
    private let fixtures = AuditFixtures()

    /// Writes two chains of several tenants' records; the clock is set back in the middle of each.
    private func fill(_ store: any AuditStore) async throws {
        for writer in 1...2 {
            var chain = AuditChain(writer: writer)
            let records = (1...Self.count)
                .map { number in
                    var record = AuditFixtures.record(number, tenant: number.isMultiple(of: 7) ? nil : "acme")
                    if number.isMultiple(of: 100) { record.tenant = "rare" }
                    if number.isMultiple(of: 3) { record.tenantUID = .max }
                    if (2_000..<3_000).contains(number) { record.time = record.time.advanced(by: .seconds(-900_000)) }
                    return record
                }
            try await self.fixtures.write(records, to: &chain, state: .closed, in: store)
        }
    }

    private func expect(_ place: AuditChain.Position?, in database: any SQLDatabase) async throws {
        let verifier = AuditVerifier(store: SQLAuditStore(database: database), sealer: self.fixtures.sealer)
        let verdict = try await verifier.verify(isLive: false)
        guard let place else {
            #expect(verdict == .intact(records: 2 * Self.count))
            return
        }
        let reason = "the record is stored, and look-ups by time or tenant do not find it"
        #expect(verdict == .tampered(place, reason: reason))
        // A start checks only the oldest and the newest record.
        let isAtEnd = place.sequence == (place.writer == 1 ? 1 : Self.count)
        #expect(try await verifier.verifyEnds() == (isAtEnd ? .tampered(place, reason: reason) : nil))
    }

    /// Positions in the middle, at the clock change, and at both ends of the audit.
    private static let places = [(1, 9), (1, 2_000), (2, 4_499), (1, 1), (2, 4_500)]
        .map { AuditChain.Position(writer: $0.0, sequence: $0.1) }

    @Test("A missing record is found in SQLite", arguments: Index.allCases)
    func inFile(index: Index) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/gateway.db"
            let database = try SQLiteDatabase(path: path)
            try await self.fill(SQLAuditStore(database: database))
            try await self.expect(nil, in: database)
            try database.close()
            for place in Self.places {
                let queue = try DatabaseQueue(path: path)
                try await queue.write { db in
                    let name = index.rawValue
                    let query = "SELECT sql FROM sqlite_schema WHERE name = ?"
                    let words = try String.fetchOne(db, sql: query, arguments: [name])
                    try db.execute(sql: "DROP INDEX \(name)")
                    try db.execute(sql: index.statement(without: place))
                    try db.execute(sql: "PRAGMA writable_schema = ON")
                    try db.execute(sql: "UPDATE sqlite_schema SET sql = ? WHERE name = ?", arguments: [words, name])
                    try db.execute(sql: "PRAGMA writable_schema = OFF")
                }
                try queue.close()
                let tampered = try SQLiteReadOnlyDatabase(path: path)
                try await self.expect(place, in: tampered)
                try tampered.close()
            }
        }
    }

    @Test("A missing record is found in PostgreSQL, analysed or not", arguments: Index.allCases, [false, true])
    func inPostgreSQL(index: Index, isAnalysed: Bool) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            try await self.fill(SQLAuditStore(database: database))
            if isAnalysed {
                try PostgreSQLFixture.run("VACUUM ANALYZE", in: PostgreSQLFixture.name(of: settings))
            }
            try await self.expect(nil, in: database)
            database.close()
            for place in Self.places {
                let name = index.rawValue
                try PostgreSQLFixture.run(
                    """
                    ALTER INDEX \(name) RENAME TO former;
                    \(index.statement(without: place));
                    UPDATE pg_index SET indpred = (SELECT indpred FROM pg_index WHERE indexrelid = 'former'::regclass)
                    WHERE indexrelid = '\(name)'::regclass;
                    DROP INDEX former
                    """,
                    in: PostgreSQLFixture.name(of: settings)
                )
                let tampered = try await PostgreSQLDatabase(settings)
                try await self.expect(place, in: tampered)
                tampered.close()
            }
        }
    }
}
