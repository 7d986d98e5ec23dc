package import GatewayCore
package import Logging
import Synchronization

/// A database that the stores' SQL runs on: SQLite by GRDB, or PostgreSQL by libpq.
///
/// Statements are written once, in the SQL that both speak: parameters are `$1`, `$2` and so on, in any order; text is
/// ordered by its bytes, the place of NULLs is never relied on, sums are cast to `BIGINT`, a parameter of no evident type is
/// cast, and no statement upserts a row twice.
///
/// A closure may run several times, so it has no effects but through its connection, and catches no error of a statement:
/// the transaction is lost by then. It runs no statement while it is handed the rows of another one.
package protocol SQLDatabase: Sendable {
    /// Whether several replicas may serve the database; where one process has it to itself, leases say nothing and nobody
    /// else's changes need be looked for.
    var isShared: Bool { get }

    /// Runs a closure that only reads, in one snapshot.
    ///
    /// A cancelled task does not wait for the end of a look-up, and gets `cancelled`. Throws `storeUnavailable`, for a
    /// listing `overloaded`, or what the closure throws, if it is a `GatewayError`.
    func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T

    /// Runs a closure in one transaction, which is durable when the call returns.
    ///
    /// A cancelled task's transaction is committed all the same, so that its caller knows what came of it.
    ///
    /// Throws `storeUnavailable`, or what the closure throws; then nothing was written, unless the cause is a
    /// ``CommitOutcomeUnknown``.
    func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T

    /// Whether this process does what one process does for all that serve the database; it takes the lead where nobody has
    /// it. A process that has the database to itself leads always.
    ///
    /// Throws `storeUnavailable` where the database does not tell within a call's time.
    func isLeader() async throws(GatewayError) -> Bool

    /// Gives the lead up, if this process has it.
    func resignLead() async

    /// Has an observer called after each transaction that called `gateway_notify()`, whichever process ran it, and when
    /// some may have been missed. It takes the place of an earlier one, and must not block.
    ///
    /// Only a hint: while the database can't be reached, nobody is told of anything.
    func whenNotified(_ observer: @escaping @Sendable () -> Void)

    /// Overwrites what deleted rows left behind outside of the tables, as far as readers allow at this moment.
    func eraseDeleted() async
}

/// The lead among the processes that serve a database.
package final class SQLLeadership: Leadership {
    private let database: any SQLDatabase
    private let logger: Logger
    private let isFailing = Atomic(false)

    package init(database: any SQLDatabase, logger: Logger) {
        (self.database, self.logger) = (database, logger)
    }

    /// Who can't ask the database does not lead; the first failure of several is logged.
    package func isHeld() async -> Bool {
        do throws(GatewayError) {
            let isHeld = try await self.database.isLeader()
            self.isFailing.store(false, ordering: .relaxed)
            return isHeld
        } catch {
            guard !self.isFailing.exchange(true, ordering: .relaxed) else { return false }
            self.logger.error(
                "The store does not tell whether this replica leads, so it does not",
                metadata: ["cause": "\(error.message)"]
            )
            return false
        }
    }

    package func resign() async { await self.database.resignLead() }
}

extension SQLDatabase {
    /// Reads by an index.
    func read<T: Sendable>(
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.read(.lookUp, scope: scope, body)
    }
}

/// Whose rows a transaction touches: row-level security holds it to them in PostgreSQL, SQLite ignores it.
package enum SQLScope: Sendable, Hashable {
    case tenant(String)
    /// Rows of all tenants: group commits, the directory, verification.
    case gateway
}

/// What a transaction has to be protected from.
package enum SQLIsolation: Sendable {
    /// It decides by what it reads; a driver runs it again where another one got in between.
    case serializable
    /// It appends, or its statements carry their own conditions.
    case readCommitted
}

/// How much a read takes of the database, and for whom (decision 0037).
package enum SQLLoad: Sendable {
    case lookUp
    /// A long read of the gateway's own, on a connection that look-ups don't wait for.
    case scan
    /// A long read that a tenant or operator asked for: one a scope at a time, and few in all. It must end soon.
    case listing
}

/// The connection of a transaction; it must not leave its closure.
///
/// Statements are prepared once for each text and connection.
package protocol SQLConnection {
    /// Runs a statement for each list of values; the number of rows that all of them changed.
    @discardableResult
    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int

    /// Inserts rows; the number of those that were inserted.
    @discardableResult
    func insert(_ rows: [[SQLValue]], by insertion: SQLInsertion) throws -> Int

    /// Runs a statement for each list of values, and hands over the rows with the place of their list.
    func queryMany(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Void) throws

    /// Runs a statement and hands over its rows, until the closure returns false.
    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws

    /// Has the transaction's further statements take their order from an index, as far as one has it.
    func preferIndexes() throws
}

extension SQLConnection {
    /// Runs a statement; the number of rows that it changed.
    @discardableResult
    func execute(_ sql: String, _ values: [SQLValue] = []) throws -> Int {
        try self.executeMany(sql, [values])
    }

    func rows<T>(_ sql: String, _ values: [SQLValue] = [], _ transform: (SQLRow) throws -> T) throws -> [T] {
        var rows: [T] = []
        try self.query(sql, values) { row in
            rows.append(try transform(row))
            return true
        }
        return rows
    }

    /// The only row of a statement, if there is one.
    func first<T>(_ sql: String, _ values: [SQLValue] = [], _ transform: (SQLRow) throws -> T) throws -> T? {
        var first: T?
        try self.query(sql, values) { row in
            if first == nil { first = try transform(row) }
            return true
        }
        return first
    }

    /// Whether a statement such as `SELECT 1 FROM …` has a row.
    func exists(_ sql: String, _ values: [SQLValue] = []) throws -> Bool {
        try self.first(sql, values) { _ in true } ?? false
    }
}

/// The texts of a statement that inserts one row, or many.
///
/// A server takes the rows of one statement in half of the time; in the gateway's own process they cost more than one by one.
package struct SQLInsertion: Sendable {
    static let manyRows = 20

    let one: String
    let many: String

    /// Columns in the order of the rows' values, and what follows them in the statement.
    init(into table: String, _ columns: [String], _ rest: String = "") {
        func text(rows: Int) -> String {
            let lists = (0..<rows)
                .map { row in columns.indices.map { "$\(row * columns.count + $0 + 1)" }.joined(separator: ", ") }
            let values = lists.map { "(\($0))" }.joined(separator: ", ")
            return "INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES \(values) \(rest)"
        }
        (self.one, self.many) = (text(rows: 1), text(rows: Self.manyRows))
    }
}

/// A value of a column or parameter. No column of the schema holds a `double`.
package enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case double(Double)
    case string(String)
    case blob([UInt8])

    static func int(_ value: Int?) -> SQLValue { value.map { .integer(Int64($0)) } ?? .null }
    static func int(_ value: Int64?) -> SQLValue { value.map { .integer($0) } ?? .null }
    static func bool(_ value: Bool) -> SQLValue { .integer(value ? 1 : 0) }
    static func text(_ value: String?) -> SQLValue { value.map { .string($0) } ?? .null }
    static func text(_ tenant: TenantID) -> SQLValue { .string(tenant.text) }
    static func bytes(_ value: [UInt8]) -> SQLValue { .blob(value) }
    static func bytes(_ value: some Sequence<UInt8>) -> SQLValue { .blob(Array(value)) }
    static func microseconds(_ duration: Duration) -> SQLValue { .integer(Int64(duration / .microseconds(1))) }
    static func time(_ value: Timestamp?) -> SQLValue { value.map { .integer($0.microseconds) } ?? .null }
}

/// A row's values by their place in the statement's list; what does not fit is refused instead of converted.
package struct SQLRow: Sendable {
    let names: [String]
    let values: [SQLValue]

    package init(names: [String], values: [SQLValue]) {
        (self.names, self.values) = (names, values)
    }

    func isNull(_ column: Int) -> Bool { self.values[column] == .null }

    func int64(_ column: Int) throws(DamagedValue) -> Int64 {
        guard case .integer(let value) = self.values[column] else { throw self.damaged(column) }
        return value
    }

    func int(_ column: Int) throws(DamagedValue) -> Int { Int(try self.int64(column)) }

    func bool(_ column: Int) throws(DamagedValue) -> Bool { try self.int64(column) != 0 }

    func text(_ column: Int) throws(DamagedValue) -> String {
        guard case .string(let value) = self.values[column] else { throw self.damaged(column) }
        return value
    }

    func optionalText(_ column: Int) throws(DamagedValue) -> String? {
        self.isNull(column) ? nil : try self.text(column)
    }

    func bytes(_ column: Int) throws(DamagedValue) -> [UInt8] {
        guard case .blob(let value) = self.values[column] else { throw self.damaged(column) }
        return value
    }

    func time(_ column: Int) throws(DamagedValue) -> Timestamp { Timestamp(microseconds: try self.int64(column)) }

    func optionalTime(_ column: Int) throws(DamagedValue) -> Timestamp? {
        self.isNull(column) ? nil : try self.time(column)
    }

    /// A text that one of the gateway's own types must accept.
    func parsed<T>(_ column: Int, _ parse: (String) -> T?) throws(DamagedValue) -> T {
        guard let value = parse(try self.text(column)) else { throw self.damaged(column) }
        return value
    }

    func tenant(_ column: Int) throws(DamagedValue) -> TenantID { try self.parsed(column) { TenantID($0) } }

    func damaged(_ column: Int) -> DamagedValue { DamagedValue(column: self.names[column]) }
}

/// A stored value that the gateway would not have written.
struct DamagedValue: Error, Hashable, CustomStringConvertible {
    let column: String

    /// Names the place, not the value.
    var description: String { "unexpected value in column \(self.column)" }
}

/// The database's own file or rows can't be read; a transaction that met this is lost.
struct DamagedFile: Error {
    let cause: any Error
}
