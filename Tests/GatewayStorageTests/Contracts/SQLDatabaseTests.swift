import GatewayCore
import Testing

@testable import GatewayStorage

/// The behaviour that the stores' SQL relies on, in every database.
struct SQLDatabaseTests {
    private static let insertSecret = "INSERT INTO gateway_secrets (name, wrapped_key, sealed) VALUES ($1, $2, $3)"

    private func names(_ database: any SQLDatabase) async throws -> [String] {
        try await database.read(scope: .gateway) { db in
            try db.rows("SELECT name FROM gateway_secrets ORDER BY name") { try $0.text(0) }
        }
    }

    @Test("Parameters are bound by number, in any order and repeatedly", arguments: StoreKind.available)
    func parameters(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let found = try await database.write(scope: .gateway, isolation: .serializable) { db in
                try db.execute(
                    "INSERT INTO gateway_secrets (sealed, name, wrapped_key) VALUES ($3, $1, $2)",
                    [.text("b"), .bytes([2]), .bytes([3])]
                )
                return try db.first(
                    "SELECT sealed, wrapped_key, name FROM gateway_secrets WHERE name >= $2 AND name <= $2 AND name <> $1",
                    [.text("a"), .text("b")]
                ) { [try $0.bytes(0), try $0.bytes(1), Array(try $0.text(2).utf8)] }
            }
            #expect(found == [[3], [2], Array("b".utf8)])
        }
    }

    @Test("Text is ordered by its bytes", arguments: StoreKind.available)
    func order(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let texts = ["", " b", "10", "9", "B", "a", "a b", "ab", "b", "ä", "\u{FFFD}", "\u{1F600}"]
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.executeMany(Self.insertSecret, texts.shuffled().map { [.text($0), .blob([]), .blob([])] })
            }
            #expect(try await self.names(database) == texts)
        }
    }

    @Test("Values are read back unchanged", arguments: StoreKind.available)
    func values(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                try db.execute(Self.insertSecret, [.text(""), .blob([]), .blob([0, 255, 39])])
                let secret = try db.first("SELECT name, wrapped_key, sealed FROM gateway_secrets") { $0.values }
                #expect(secret == [.string(""), .blob([]), .blob([0, 255, 39])])
                for number in [Int64.min, -1, 0, .max] {
                    let values: [SQLValue] = [.integer(number), .blob([1]), .blob([2])]
                    try db.execute(
                        "INSERT INTO audit_checkpoints (number, content, signature) VALUES ($1, $2, $3)",
                        values
                    )
                }
                let numbers = try db.rows("SELECT number FROM audit_checkpoints ORDER BY number") { try $0.int64(0) }
                #expect(numbers == [Int64.min, -1, 0, .max])
                let none = try db.first("SELECT max(number) FROM audit_checkpoints WHERE number > 7 AND number < 9") {
                    $0.isNull(0)
                }
                #expect(none == true)
            }
        }
    }

    @Test("The count of changed rows excludes those skipped by a conflict", arguments: StoreKind.available)
    func changes(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                let insert = Self.insertSecret + " ON CONFLICT (name) DO NOTHING"
                let rows = ["a", "b", "a", "c"].map { [SQLValue.text($0), .blob([1]), .blob([2])] }
                #expect(try db.executeMany(insert, rows) == 3)
                #expect(try db.executeMany(insert, []) == 0)
                let update = "UPDATE gateway_secrets SET sealed = $1 WHERE name > $2"
                #expect(try db.execute(update, [.blob([3]), .text("a")]) == 2)
                #expect(try db.execute(update, [.blob([3]), .text("c")]) == 0)
                let gone = try db.rows("DELETE FROM gateway_secrets WHERE sealed = $1 RETURNING name", [.blob([3])]) {
                    try $0.text(0)
                }
                #expect(gone.sorted() == ["b", "c"])
                #expect(try db.exists("SELECT 1 FROM gateway_secrets"))
            }
        }
    }

    @Test("A transaction whose closure throws is rolled back", arguments: StoreKind.available)
    func rollback(kind: StoreKind) async throws {
        try await kind.withDatabase { database async throws in
            await expectError(.conflict) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    try db.execute(Self.insertSecret, [.text("a"), .blob([]), .blob([])])
                    throw GatewayError(.conflict, "no")
                }
            }
            #expect(try await self.names(database).isEmpty)
        }
    }

    @Test("A query passes rows until its closure returns false", arguments: StoreKind.available)
    func early(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                _ = try db.executeMany(Self.insertSecret, (0..<10).map { [.text("\($0)"), .blob([]), .blob([])] })
                for enough in [1, 3, 10] {
                    var seen = 0
                    try db.query("SELECT name FROM gateway_secrets ORDER BY name", []) { _ in
                        seen += 1
                        return seen < enough
                    }
                    #expect(seen == enough)
                }
            }
        }
    }

    @Test("A value of another type is reported as damaged, not converted", arguments: StoreKind.available)
    func damaged(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let error = await #expect(throws: GatewayError.self) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    try db.execute(Self.insertSecret, [.text("7"), .blob([55]), .blob([])])
                    _ = try db.first("SELECT name FROM gateway_secrets") { try $0.int(0) }
                }
            }
            #expect(error?.code == .storeUnavailable)
            #expect((error?.cause as? DamagedValue)?.column == "name")
        }
    }

    @Test("Every kind of read sees committed rows, and no read can write", arguments: StoreKind.available)
    func isolation(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await SQLDirectoryStore(database: database)
                .apply(.putTenant(try DirectoryFixtures.tenant("acme"), salt: [1]))
            for name in ["a", "b"] {
                try await database.write(scope: .tenant("acme"), isolation: .readCommitted) { db in
                    _ = try db.execute(
                        """
                        INSERT INTO device_groups (
                            tenant, name, upstream_name, members, is_complete, version, updated_at
                        ) VALUES ($1, $2, '', '[]', 1, 1, 0)
                        """,
                        [.text("acme"), .text(name)]
                    )
                }
            }
            for scope in [SQLScope.tenant("acme"), .gateway] {
                for load in [SQLLoad.lookUp, .scan, .listing] {
                    let names = try await database.read(load, scope: scope) { db in
                        try db.rows("SELECT name FROM device_groups ORDER BY name") { try $0.text(0) }
                    }
                    #expect(names == ["a", "b"])
                }
                await expectError(.storeUnavailable) {
                    try await database.read(.scan, scope: scope) { db in
                        try db.execute("DELETE FROM device_groups WHERE name = $1", [.text("a")])
                    }
                }
            }
        }
    }

    @Test(
        "A batch of any size is stored whole, or not at all",
        arguments: StoreKind.available,
        [1, 999, 1_000, 1_001, 5_000]
    )
    func batches(kind: StoreKind, count: Int) async throws {
        try await kind.withDatabase { database async throws in
            let rows: [[SQLValue]] = (0..<count)
                .map { number in
                    [.int(number), .blob(Array(repeating: 7, count: 1_000)), .blob([1])]
                }
            let insert = "INSERT INTO audit_checkpoints (number, content, signature) VALUES ($1, $2, $3)"
            // PostgreSQL reports that the statement is invalid.
            await expectError(kind == .sqlite ? .storeUnavailable : .invalid) {
                try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                    _ = try db.executeMany(insert, rows + [[.int(count - 1), .blob([]), .blob([])]])
                }
            }
            let added = try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                let stored = try db.first("SELECT count(*) FROM audit_checkpoints") { try $0.int(0) }
                #expect(stored == 0)
                return try db.executeMany(insert, rows)
            }
            #expect(added == count)
        }
    }

    @Test("A single process becomes the leader each time it asks", arguments: StoreKind.available)
    func lead(kind: StoreKind) async throws {
        try await kind.withDatabase { database async throws in
            // Resigning without leading has no effect.
            await database.resignLead()
            #expect(try await database.isLeader())
            #expect(try await database.isLeader())
            await database.resignLead()
            #expect(try await database.isLeader())
        }
    }

    @Test("Statements can read the database's time and send notifications", arguments: StoreKind.available)
    func functions(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            for scope in [SQLScope.tenant("acme"), .gateway] {
                let times = try await database.write(scope: scope, isolation: .readCommitted) { db in
                    #expect(try db.exists("SELECT gateway_notify()"))
                    return try (0..<2).map { _ in try db.first("SELECT gateway_time()") { try $0.int64(0) } ?? 0 }
                }
                #expect(times[0] > 0)
                #expect(times[0] <= times[1])
            }
        }
    }

    @Test("Serializable transactions that read before they write lose no update", arguments: StoreKind.available)
    func concurrent(kind: StoreKind) async throws {
        try await kind.withDatabase { database async throws in
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                _ = try db.execute("INSERT INTO idempotency_mark (id, time, wall) VALUES (1, 0, 0)")
            }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        do throws(GatewayError) {
                            try await database.write(scope: .gateway, isolation: .serializable) { db in
                                let time = try db.first("SELECT time FROM idempotency_mark") { try $0.int(0) } ?? 0
                                try db.execute("UPDATE idempotency_mark SET time = $1", [.int(time + 1)])
                            }
                            return true
                        } catch {
                            // Every attempt met a conflict.
                            guard error.code == .storeUnavailable else { throw error }
                            return false
                        }
                    }
                }
                var done = 0
                for try await isDone in group where isDone { done += 1 }
                let time = try await database.read(scope: .gateway) { db in
                    try db.first("SELECT time FROM idempotency_mark") { try $0.int(0) }
                }
                #expect(time == done)
                #expect(done > 0)
            }
        }
    }
}
