import GRDB
import GRDBSQLite
import GatewayCore

/// Hands stored records to a walk as their bytes.
///
/// Reads through SQLite's own interface: GRDB's makes values and copies of each column, which takes longer than the
/// hashing.
struct AuditRowWalk {
    private static let select = """
        SELECT sequence, time, tenant, body, hash FROM audit_records
        WHERE writer = ? AND sequence >= ? ORDER BY sequence LIMIT ?
        """

    /// A walk that ended because the file is damaged; thrown, since SQLite ends no transaction in which it saw that.
    struct Broken: Error {
        let walker: AuditWalker
        let rows: Int

        init(_ walker: AuditWalker, rows: Int) {
            (self.walker, self.rows) = (walker, rows)
        }
    }

    let db: Database

    /// Walks until the walk ends, or there are no more rows.
    ///
    /// - Returns: how many rows were read.
    /// - Throws: what the database throws.
    func walk(_ walker: inout AuditWalker, limit: Int) throws -> Int {
        let statement = try self.db.cachedStatement(sql: Self.select)
        // Unsafe: the statement is SQLite's, and lives in GRDB's cache for as long as the connection.
        let raw = unsafe statement.sqliteStatement
        unsafe sqlite3_reset(raw)
        unsafe sqlite3_bind_int64(raw, 1, Int64(walker.chain.writer))
        unsafe sqlite3_bind_int64(raw, 2, Int64(walker.nextSequence))
        unsafe sqlite3_bind_int64(raw, 3, Int64(limit))
        defer {
            unsafe sqlite3_reset(raw)
            unsafe sqlite3_clear_bindings(raw)
        }
        var row = AuditRow()
        var count = 0
        while true {
            let code = unsafe sqlite3_step(raw)
            if code == SQLITE_DONE { return count }
            // Extended codes have the plain one in their lowest byte.
            if code & 0xFF == SQLITE_CORRUPT {
                walker.stop("the store's file is damaged here")
                throw GatewayError(.storeUnavailable, "The store's file is damaged", cause: Broken(walker, rows: count))
            }
            guard code == SQLITE_ROW else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code), message: self.db.lastErrorMessage)
            }
            count += 1
            unsafe Self.fill(&row, from: raw)
            guard walker.step(row) else { return count }
        }
    }

    private static func fill(_ row: inout AuditRow, from raw: SQLiteStatement) {
        // Asked before anything is taken out, which may convert it.
        let placeType = unsafe sqlite3_column_type(raw, 0)
        let timeType = unsafe sqlite3_column_type(raw, 1)
        let tenantType = unsafe sqlite3_column_type(raw, 2)
        let bodyType = unsafe sqlite3_column_type(raw, 3)
        let hashType = unsafe sqlite3_column_type(raw, 4)
        // Text and numbers with a fraction sort behind all whole numbers, where nothing is expected.
        row.sequence = placeType == SQLITE_INTEGER ? Int(unsafe sqlite3_column_int64(raw, 0)) : Int.max
        row.time = unsafe sqlite3_column_int64(raw, 1)
        row.hasTenant = tenantType != SQLITE_NULL
        unsafe self.fill(&row.tenant, from: raw, 2)
        unsafe self.fill(&row.body, from: raw, 3)
        unsafe self.fill(&row.hash, from: raw, 4)
        // Only a tenant with a zero byte is kept as a blob (`AuditRowWriter`); look-ups miss any other blob.
        let tenantIsRight =
            switch tenantType {
            case SQLITE_NULL: true
            case SQLITE_TEXT: !row.tenant.contains(0)
            case SQLITE_BLOB: row.tenant.contains(0)
            default: false
            }
        row.isReadable =
            tenantIsRight && timeType == SQLITE_INTEGER && bodyType == SQLITE_BLOB && hashType == SQLITE_BLOB
    }

    private static func fill(_ bytes: inout [UInt8], from raw: SQLiteStatement, _ column: CInt) {
        bytes.removeAll(keepingCapacity: true)
        // The pointer is SQLite's until the next step; what it points to is copied at once.
        guard let start = unsafe sqlite3_column_blob(raw, column) else { return }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
    }
}
