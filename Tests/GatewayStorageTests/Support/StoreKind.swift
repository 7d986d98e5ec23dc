import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// The back ends that the store contracts are run over.
enum StoreKind: String, CaseIterable, Sendable {
    case sqlite

    /// Those that can be had where the tests run.
    static var available: [StoreKind] { Self.allCases }

    /// Runs a body with a database that has the schema and nothing in it.
    func withDatabase(_ body: (any SQLDatabase) async throws -> Void) async throws {
        switch self {
        case .sqlite: try await withSQLiteDatabase { try await body($0) }
        }
    }

    /// Runs a body with a directory that holds nothing yet.
    func withDirectoryStore(_ body: (any DirectoryStore) async throws -> Void) async throws {
        try await self.withDatabase { try await body(SQLDirectoryStore(database: $0)) }
    }

    /// Runs a body with device groups of the tenants `acme` and `other`, of which there are none yet.
    func withGroupStore(_ body: (any GroupStore) async throws -> Void) async throws {
        try await self.withDatabase { database in
            let directory = SQLDirectoryStore(database: database)
            for name in ["acme", "other"] {
                try await directory.apply(.putTenant(try DirectoryFixtures.tenant(name), salt: [1]))
            }
            try await body(SQLGroupStore(database: database))
        }
    }

    /// Runs a body with a list of retired tokens that holds nothing yet, and a directory for its tenants.
    func withRetiredTokenStore(_ body: (any RetiredTokenStore, any DirectoryStore) async throws -> Void) async throws {
        try await self.withDatabase { database in
            try await body(SQLRetiredTokenStore(database: database), SQLDirectoryStore(database: database))
        }
    }

    /// Runs a body with a store of idempotency keys that holds nothing yet, and a directory for its tenants.
    func withIdempotencyStore(
        bounds: IdempotencyBounds = IdempotencyBounds(),
        _ body: (any IdempotencyStore, any DirectoryStore) async throws -> Void
    ) async throws {
        try await self.withDatabase { database in
            let store = SQLIdempotencyStore(database: database, bounds: bounds)
            try await body(store, SQLDirectoryStore(database: database))
        }
    }

    /// Runs a body with an audit that holds nothing yet.
    func withAuditStore(_ body: (any AuditStore) async throws -> Void) async throws {
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

extension SQLDatabase {
    /// Does to SQLite's file what no store does.
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

extension SQLDirectoryStore {
    /// A directory whose rows are sealed as those of all tests.
    init(database: any SQLDatabase) {
        self.init(database: database, sealer: RowSealer(keyPepper: Secret("pepper")))
    }
}

/// Expects a body to throw an error of the gateway's own, whose message contains some words.
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
