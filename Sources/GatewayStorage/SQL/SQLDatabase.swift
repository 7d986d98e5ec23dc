package import GatewayCore
package import Logging
import Synchronization

/// A database that the stores' SQL runs on: SQLite through GRDB, or PostgreSQL through libpq.
///
/// Each statement is written once, in the SQL that both understand. Parameters are `$1`, `$2` and so on, in any order.
/// Text is ordered by its bytes. Statements don't rely on the order of NULLs, cast sums to `BIGINT`, cast parameters
/// whose type is not evident, and don't upsert a row twice.
///
/// A closure may run several times, so its only effects are on its connection. It catches no error of a statement,
/// because the transaction is lost by then. While it receives the rows of one statement it runs no other.
package protocol SQLDatabase: Sendable {
    /// True if several replicas may serve the database. If false, one process has the database to itself: it needs no
    /// leases, and no other process makes changes.
    var isShared: Bool { get }

    /// Runs a closure that only reads, in one snapshot.
    ///
    /// A cancelled task stops waiting for a look-up and gets `cancelled`. Throws `storeUnavailable`, `overloaded` for a
    /// listing, or what the closure throws, if it is a `GatewayError`.
    func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T

    /// Runs a closure in one transaction, which is durable when the call returns.
    ///
    /// A cancelled task's transaction is committed nevertheless, so that its caller learns the outcome.
    ///
    /// Throws `storeUnavailable`, or what the closure throws. Then nothing was written, unless the cause is a
    /// ``CommitOutcomeUnknown``.
    func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T

    /// Returns true if this process leads, and takes the lead if no process has it. The leader does the work that one
    /// process does for all that serve the database. A process that has the database to itself always leads.
    ///
    /// Throws `storeUnavailable` if the database does not answer within a call's timeout.
    func isLeader() async throws(GatewayError) -> Bool

    /// Gives up the lead, if this process has it.
    func resignLead() async

    /// Calls an observer after each transaction that called `gateway_notify()` in any process, and when notifications
    /// may have been missed. It replaces an earlier observer, and must not block.
    ///
    /// A notification is only a hint: there are none while the database can't be reached.
    func whenNotified(_ observer: @escaping @Sendable () -> Void)

    /// Overwrites the remains of deleted rows outside of the tables, as far as current readers allow.
    func eraseDeleted() async
}

/// Leadership among the processes that serve a database.
package final class SQLLeadership: Leadership {
    private let database: any SQLDatabase
    private let logger: Logger
    private let isFailing = Atomic(false)

    package init(database: any SQLDatabase, logger: Logger) {
        (self.database, self.logger) = (database, logger)
    }

    /// A replica that can't reach the database is not the leader. Only the first of several consecutive failures is
    /// logged.
    package func isHeld() async -> Bool {
        do throws(GatewayError) {
            let isHeld = try await self.database.isLeader()
            self.isFailing.store(false, ordering: .relaxed)
            return isHeld
        } catch {
            guard !self.isFailing.exchange(true, ordering: .relaxed) else { return false }
            self.logger.error(
                "Can't ask the store for the lead; this replica does not lead",
                metadata: ["cause": "\(error.message)"]
            )
            return false
        }
    }

    package func resign() async { await self.database.resignLead() }
}

extension SQLDatabase {
    /// Reads through an index.
    func read<T: Sendable>(
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.read(.lookUp, scope: scope, body)
    }
}

/// The rows that a transaction touches. Row-level security enforces it in PostgreSQL; SQLite ignores it.
package enum SQLScope: Sendable, Hashable {
    case tenant(String)
    /// Rows of all tenants: group commits, the directory, verification.
    case gateway
}

/// The protection that a transaction needs from others.
package enum SQLIsolation: Sendable {
    /// It decides by what it reads. A driver runs it again after a conflict.
    case serializable
    /// It only appends, or its statements carry their own conditions.
    case readCommitted
}

/// The cost of a read, and for whom it runs (decision 0037).
package enum SQLLoad: Sendable {
    case lookUp
    /// A long read of the gateway's own, on a connection that look-ups don't wait for.
    case scan
    /// A long read that a tenant or operator asked for: one per scope at a time, and few in all. It must end soon.
    case listing
}

/// The connection of a transaction, valid only within its closure.
///
/// A statement is prepared once for each text and connection.
package protocol SQLConnection {
    /// Runs a statement for each list of values. Returns the number of rows that all of them changed.
    @discardableResult
    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int

    /// Inserts rows. Returns the number of rows inserted.
    @discardableResult
    func insert(_ rows: [[SQLValue]], by insertion: SQLInsertion) throws -> Int

    /// Runs a statement for each list of values. Passes each row with the index of its list.
    func queryMany(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Void) throws

    /// Runs a statement and passes each row to the closure, until it returns false.
    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws

    /// Makes the transaction's later statements take their order from an index, if one has it.
    func preferIndexes() throws
}

extension SQLConnection {
    /// Runs a statement. Returns the number of rows that it changed.
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

    /// Returns the only row of a statement, if there is one.
    func first<T>(_ sql: String, _ values: [SQLValue] = [], _ transform: (SQLRow) throws -> T) throws -> T? {
        var first: T?
        try self.query(sql, values) { row in
            if first == nil { first = try transform(row) }
            return true
        }
        return first
    }

    /// Returns true if a statement such as `SELECT 1 FROM …` has a row.
    func exists(_ sql: String, _ values: [SQLValue] = []) throws -> Bool {
        try self.first(sql, values) { _ in true } ?? false
    }
}

/// A statement that inserts one row, and its form for many rows.
///
/// A server takes many rows of one statement in half the time. Within the gateway's process, single rows are faster.
package struct SQLInsertion: Sendable {
    static let manyRows = 20

    let one: String
    let many: String

    /// `columns` are in the order of the rows' values. `rest` ends the statement.
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

/// A row's values in the order of the statement's columns. A value of an unexpected type is refused, not converted.
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

    /// A text that one of the gateway's types must accept.
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

    /// Names the column, never the value.
    var description: String { "unexpected value in column \(self.column)" }
}

/// The database's own file or pages can't be read. The transaction is lost.
struct DamagedFile: Error {
    let cause: any Error
}
