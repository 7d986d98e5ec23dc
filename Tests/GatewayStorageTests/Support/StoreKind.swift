import GRDB
import GatewayCore
import Synchronization
import Testing

@testable import GatewayStorage

/// The back ends that the store contracts are run over.
enum StoreKind: String, CaseIterable, Sendable {
    case sqlite
    case postgresql
    /// A schema created by the previous release and extended by the next, as during a rolling upgrade.
    case upgradedPostgreSQL

    /// The back ends that are available to the tests.
    static var available: [StoreKind] { Self.allCases }

    /// Runs a body with a migrated, empty database.
    func withDatabase(_ body: (any SQLDatabase) async throws -> Void) async throws {
        switch self {
        case .sqlite: try await withSQLiteDatabase { try await body($0) }
        case .postgresql: try await withPostgreSQLDatabase { try await body($0) }
        case .upgradedPostgreSQL: try await withPostgreSQLDatabase(later: true) { try await body($0) }
        }
    }

    /// Runs a body with an empty directory.
    func withDirectoryStore(_ body: (any DirectoryStore) async throws -> Void) async throws {
        try await self.withDatabase { try await body(SQLDirectoryStore(database: $0)) }
    }

    /// Runs a body with an empty store of device groups, with the tenants `acme` and `other`.
    func withGroupStore(_ body: (any GroupStore) async throws -> Void) async throws {
        try await self.withDatabase { database in
            let directory = SQLDirectoryStore(database: database)
            for name in ["acme", "other"] {
                try await directory.apply(.putTenant(try DirectoryFixtures.tenant(name), salt: [1]))
            }
            try await body(SQLGroupStore(database: database))
        }
    }

    /// Runs a body with an empty store of idempotency keys, and the directory of its tenants.
    func withIdempotencyStore(
        of tenants: [String] = ["acme"],
        bounds: IdempotencyBounds = IdempotencyBounds(),
        _ body: (any IdempotencyStore, any DirectoryStore) async throws -> Void
    ) async throws {
        try await self.withDatabase { database in
            let store = SQLIdempotencyStore(database: database, bounds: bounds)
            let directory = SQLDirectoryStore(database: database)
            for name in tenants { try await directory.apply(.putTenant(try DirectoryFixtures.tenant(name), salt: [1])) }
            try await body(store, directory)
        }
    }

    /// Runs a body with an empty audit.
    func withAuditStore(_ body: (SQLAuditStore) async throws -> Void) async throws {
        try await self.withDatabase { try await body(SQLAuditStore(database: $0)) }
    }
}

/// Runs a body with a new database that is closed and removed afterwards.
func withSQLiteDatabase(_ body: (SQLiteDatabase) async throws -> Void) async throws {
    try await withTemporaryDirectory { directory in
        let database = try SQLiteDatabase(path: directory + "/gateway.db")
        try await body(database)
        try database.close()
    }
}

/// Runs a body with a new database whose own clock stands still until the body moves it.
func withClockedDatabase(_ body: (SQLiteDatabase, StoppedClock) async throws -> Void) async throws {
    try await withTemporaryDirectory { directory in
        let clock = StoppedClock()
        let database = try SQLiteDatabase(path: directory + "/gateway.db", clock: clock)
        try await body(database, clock)
        try database.close()
    }
}

/// A database's clock that stands still until a test moves it.
final class StoppedClock: WallClock {
    private let time = Mutex(DirectoryFixtures.start)

    func now() -> Timestamp { self.time.withLock { $0 } }

    func advance(by duration: Duration) { self.time.withLock { $0 = $0.advanced(by: duration) } }
}

extension SQLDatabase {
    /// Waits until all transactions that began before this call have ended.
    func whenSettled() async throws(GatewayError) {
        let number = try await self.write(scope: .gateway, isolation: .readCommitted) { db in
            try db.first("SELECT gateway_transaction()") { try $0.int64(0) } ?? 0
        }
        while true {
            let horizon = try await self.read(scope: .gateway) { db in
                try db.first("SELECT gateway_change_horizon()") { try $0.int64(0) } ?? 0
            }
            if horizon >= number || Task.isCancelled { return }
        }
    }

    /// Writes to SQLite directly, as no store does.
    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        try await self.write(scope: .gateway, isolation: .serializable) { try body($0.sqlite()) }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        try await self.read(scope: .gateway) { try body($0.sqlite()) }
    }
}

extension SQLConnection {
    func sqlite() throws -> Database {
        guard let connection = self as? GRDBConnection else {
            throw GatewayError(.invalid, "The database is none of SQLite's")
        }
        return connection.db
    }
}

/// A database that counts the rows read by its write transactions.
final class CountingDatabase: SQLDatabase {
    private let database: any SQLDatabase
    let rows = Mutex(0)

    init(_ database: any SQLDatabase) {
        self.database = database
    }

    var isShared: Bool { self.database.isShared }

    func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.database.read(load, scope: scope, body)
    }

    func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.database.write(scope: scope, isolation: isolation) { db in
            let counting = CountingConnection(db)
            let result = try body(counting)
            self.rows.withLock { $0 += counting.rows }
            return result
        }
    }

    func isLeader() async throws(GatewayError) -> Bool { try await self.database.isLeader() }

    func resignLead() async { await self.database.resignLead() }

    func whenNotified(_ observer: @escaping @Sendable () -> Void) { self.database.whenNotified(observer) }

    func eraseDeleted() async { await self.database.eraseDeleted() }
}

/// A connection that counts all rows of its statements, even those after the reader stops.
final class CountingConnection: SQLConnection {
    private let connection: any SQLConnection
    private(set) var rows = 0
    private(set) var bytes = 0

    init(_ connection: any SQLConnection) {
        self.connection = connection
    }

    private func count(_ row: SQLRow) {
        self.rows += 1
        for value in row.values {
            switch value {
            case .null, .integer, .double: self.bytes += 8
            case .string(let text): self.bytes += text.utf8.count
            case .blob(let content): self.bytes += content.count
            }
        }
    }

    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int {
        try self.connection.executeMany(sql, values)
    }

    func insert(_ rows: [[SQLValue]], by insertion: SQLInsertion) throws -> Int {
        try self.connection.insert(rows, by: insertion)
    }

    func queryMany(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Void) throws {
        try self.connection.queryMany(sql, values) { place, row in
            self.count(row)
            try body(place, row)
        }
    }

    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        var isEnough = false
        try self.connection.query(sql, values) { row in
            self.count(row)
            if !isEnough { isEnough = try !body(row) }
            return true
        }
    }

    func preferIndexes() throws { try self.connection.preferIndexes() }
}

extension DirectoryStore {
    /// Applies a change that is planned at the store's current version.
    @discardableResult
    func apply(_ change: Directory.Change) async throws(GatewayError) -> Directory.Contents {
        let contents = try await self.apply(change, plannedAt: try await self.load().version)
        guard let contents else { throw GatewayError(.invalid, "The tenant was changed meanwhile") }
        return contents
    }
}

extension SQLDirectoryStore {
    /// A directory with the sealer that all tests share.
    init(database: any SQLDatabase) {
        self.init(database: database, sealer: RowSealer(keyPepper: Secret("pepper")))
    }
}

/// Expects a body to throw a `GatewayError` with this code, whose message contains the words.
func expectError<T>(
    _ code: GatewayError.Code,
    _ words: String = "",
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async {
    let error = await #expect(throws: GatewayError.self, sourceLocation: sourceLocation) { _ = try await body() }
    #expect(error?.code == code, sourceLocation: sourceLocation)
    #expect(words.isEmpty || error?.message.contains(words) == true, sourceLocation: sourceLocation)
}
