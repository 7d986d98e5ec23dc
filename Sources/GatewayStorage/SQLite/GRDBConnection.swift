import GRDB
import GRDBSQLite
import GatewayCore

/// Statements on SQLite's own interface, prepared and cached by GRDB.
///
/// GRDB's own interface boxes values and converts columns to the requested type. That costs more than the statements,
/// and hides damage: text would end at its first zero byte, and invalid UTF-8 would be repaired.
struct GRDBConnection: SQLConnection {
    let db: Database

    func executeMany(_ sql: String, _ values: [[SQLValue]]) throws -> Int {
        let statement = try self.db.cachedStatement(sql: sql)
        let places = Self.places(statement)
        var changes = 0
        for row in values {
            try unsafe self.run(statement, places, row) { _ in
                throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "The statement returned unexpected rows")
            }
            changes += self.db.changesCount
        }
        return changes
    }

    func insert(_ rows: [[SQLValue]], by insertion: SQLInsertion) throws -> Int {
        try self.executeMany(insertion.one, rows)
    }

    func queryMany(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Void) throws {
        try self.query(sql, values) {
            try body($0, $1)
            return true
        }
    }

    func query(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
        try self.query(sql, [values]) { try body($1) }
    }

    /// Runs a statement once for each list of values, and reads the rows of each until the closure returns `false`.
    private func query(_ sql: String, _ values: [[SQLValue]], _ body: (Int, SQLRow) throws -> Bool) throws {
        let statement = try self.db.cachedStatement(sql: sql)
        let places = Self.places(statement)
        var names: [String] = []
        for (index, list) in values.enumerated() {
            try unsafe self.run(statement, places, list) { raw in
                if names.isEmpty { names = unsafe Self.names(raw) }
                var columns: [SQLValue] = []
                columns.reserveCapacity(names.count)
                for column in 0..<CInt(names.count) { columns.append(unsafe Self.value(raw, column)) }
                return try body(index, SQLRow(names: names, values: columns))
            }
        }
    }

    /// Does nothing: without statistics, SQLite prefers an index that has the order.
    func preferIndexes() {}

    /// Binds values and steps through the rows.
    private func run(
        _ statement: Statement,
        _ places: [Int],
        _ values: [SQLValue],
        _ row: (SQLiteStatement) throws -> Bool
    ) throws {
        let raw = unsafe statement.sqliteStatement
        defer {
            unsafe sqlite3_reset(raw)
            unsafe sqlite3_clear_bindings(raw)
        }
        for (index, place) in places.enumerated() {
            let code = unsafe Self.bind(raw, CInt(index + 1), values[place])
            guard code == SQLITE_OK else { throw self.error(code) }
        }
        while true {
            let code = unsafe sqlite3_step(raw)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw self.error(code) }
            guard try unsafe row(raw) else { return }
        }
    }

    private func error(_ code: CInt) -> any Error {
        let error = DatabaseError(resultCode: ResultCode(rawValue: code), message: self.db.lastErrorMessage)
        // The lowest byte of an extended code is the primary code.
        return code & 0xFF == SQLITE_CORRUPT || code & 0xFF == SQLITE_NOTADB ? DamagedFile(cause: error) : error
    }

    /// Maps each of a statement's parameters to the index of its value: SQLite numbers `$2` and `$1` in the order in
    /// which they appear.
    private static func places(_ statement: Statement) -> [Int] {
        // Unsafe: SQLite owns the names for as long as the statement lives.
        let raw = unsafe statement.sqliteStatement
        let count = unsafe sqlite3_bind_parameter_count(raw)
        var places: [Int] = []
        for index in 1..<(count + 1) {
            guard let name = unsafe sqlite3_bind_parameter_name(raw, index),
                let number = Int(unsafe String(cString: name).dropFirst())
            else { preconditionFailure("parameter \(index) is none of $1, $2 and so on") }
            places.append(number - 1)
        }
        return places
    }

    private static func bind(_ raw: SQLiteStatement, _ index: CInt, _ value: SQLValue) -> CInt {
        // Unsafe: SQLite copies the bytes before the call returns.
        let copy = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null: return unsafe sqlite3_bind_null(raw, index)
        case .integer(let number): return unsafe sqlite3_bind_int64(raw, index, number)
        case .double(let number): return unsafe sqlite3_bind_double(raw, index, number)
        case .string(var text):
            return text.withUTF8 { bytes in
                // An empty text may have no address, which SQLite would take for NULL.
                guard let start = bytes.baseAddress else { return unsafe sqlite3_bind_text(raw, index, "", 0, copy) }
                return unsafe UnsafeRawPointer(start)
                    .withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                        unsafe sqlite3_bind_text(raw, index, $0, CInt(bytes.count), copy)
                    }
            }
        case .blob(let bytes):
            if bytes.isEmpty { return unsafe sqlite3_bind_zeroblob(raw, index, 0) }
            return unsafe bytes.withUnsafeBytes {
                unsafe sqlite3_bind_blob(raw, index, $0.baseAddress, CInt($0.count), copy)
            }
        }
    }

    private static func names(_ raw: SQLiteStatement) -> [String] {
        let count = unsafe sqlite3_column_count(raw)
        var names: [String] = []
        for column in 0..<count {
            guard let name = unsafe sqlite3_column_name(raw, column) else { break }
            names.append(unsafe String(cString: name))
        }
        return names
    }

    /// A column as it is stored. Invalid UTF-8 is returned as bytes, which no reader of text accepts.
    private static func value(_ raw: SQLiteStatement, _ column: CInt) -> SQLValue {
        switch unsafe sqlite3_column_type(raw, column) {
        case SQLITE_INTEGER: return .integer(unsafe sqlite3_column_int64(raw, column))
        case SQLITE_FLOAT: return .double(unsafe sqlite3_column_double(raw, column))
        case SQLITE_TEXT:
            let bytes = unsafe Self.bytes(raw, column)
            return String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .blob(bytes)
        case SQLITE_BLOB: return .blob(unsafe Self.bytes(raw, column))
        default: return .null
        }
    }

    private static func bytes(_ raw: SQLiteStatement, _ column: CInt) -> [UInt8] {
        // SQLite owns the pointer until the next step. The bytes are copied at once.
        guard let start = unsafe sqlite3_column_blob(raw, column) else { return [] }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}

extension GatewayError {
    /// Translates an error of the database. An error of the gateway's own passes unchanged.
    init(translating error: any Error) {
        if let error = error as? GatewayError {
            self = error
            return
        }
        if error is CancellationError {
            self.init(.cancelled, "The operation was cancelled", cause: error)
            return
        }
        if error is DamagedValue {
            self.init(.storeUnavailable, "The store holds a value that this gateway does not understand", cause: error)
            return
        }
        let message: String
        switch ((error as? DamagedFile)?.cause as? DatabaseError ?? error as? DatabaseError)?.resultCode {
        case .SQLITE_FULL: message = "The store's disk is full"
        case .SQLITE_IOERR: message = "The store's disk reports an error"
        case .SQLITE_READONLY, .SQLITE_PERM: message = "The store can't be written"
        case .SQLITE_BUSY, .SQLITE_LOCKED: message = "The store is busy"
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: message = "The store's file is damaged or no database"
        case .SQLITE_CANTOPEN: message = "The store's file can't be opened"
        default: message = "The store does not answer as it should"
        }
        self.init(.storeUnavailable, message, cause: error)
    }
}
