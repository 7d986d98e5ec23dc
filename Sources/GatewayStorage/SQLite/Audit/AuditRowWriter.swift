import GRDB
import GRDBSQLite
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Inserts records of the audit within a transaction.
struct AuditRowWriter {
    /// Rows of one statement; more of them gain little.
    private static let rowsPerStatement = 24
    /// Most rows are shorter.
    private static let rowCapacityBytes = 384

    private static let insertOne = Self.insertStatement(rows: 1)
    private static let insertMany = Self.insertStatement(rows: Self.rowsPerStatement)

    let db: Database

    /// Inserts records; those whose place is taken by themselves are left alone.
    ///
    /// - Throws: `conflict` when a place is taken by another record, and what the database throws.
    func insert(_ records: [ChainedAuditRecord]) throws {
        let changesBefore = self.db.totalChangesCount
        var rest = records[...]
        if rest.count >= Self.rowsPerStatement {
            let statement = try self.db.cachedStatement(sql: Self.insertMany)
            while rest.count >= Self.rowsPerStatement {
                try self.execute(statement, rest.prefix(Self.rowsPerStatement))
                rest = rest.dropFirst(Self.rowsPerStatement)
            }
        }
        if !rest.isEmpty {
            let statement = try self.db.cachedStatement(sql: Self.insertOne)
            for index in rest.indices {
                try self.execute(statement, rest[index...index])
            }
        }
        if self.db.totalChangesCount - changesBefore < records.count {
            try self.requireSame(records)
        }
    }

    /// Where a record's variable parts stand in the bytes of a statement.
    private struct Parts {
        var body: Range<Int>
        var hash: Range<Int>
        var tenant: Range<Int>
        /// Whether the tenant has to be kept as a blob.
        ///
        /// Text ends at its first zero byte when it is read, which would change the record. The reader takes such a
        /// blob for text as well.
        var tenantIsBlob: Bool
    }

    /// Inserts the rows of one statement.
    ///
    /// Binds through SQLite's own interface: GRDB's takes a list of boxed values, which costs more than the insert.
    private func execute(_ statement: Statement, _ records: ArraySlice<ChainedAuditRecord>) throws {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(records.count * Self.rowCapacityBytes)
        var parts: [Parts] = []
        parts.reserveCapacity(records.count)
        for index in records.indices {
            let bodyStart = bytes.count
            bytes.append(contentsOf: records[index].entry.body)
            let hashStart = bytes.count
            bytes.append(contentsOf: records[index].hash)
            let tenantStart = bytes.count
            if let tenant = records[index].entry.tenant { bytes.append(contentsOf: tenant.utf8) }
            parts.append(
                Parts(
                    body: bodyStart..<hashStart,
                    hash: hashStart..<tenantStart,
                    tenant: tenantStart..<bytes.count,
                    tenantIsBlob: bytes[tenantStart...].contains(0)
                )
            )
        }
        // Unsafe: SQLite keeps the pointers until the bindings are cleared, which happens before the bytes can go.
        try unsafe bytes.withUnsafeBytes { base in
            defer {
                unsafe sqlite3_reset(statement.sqliteStatement)
                unsafe sqlite3_clear_bindings(statement.sqliteStatement)
            }
            var binder = unsafe Binder(statement: statement.sqliteStatement, base: base)
            for (part, index) in zip(parts, records.indices) {
                unsafe binder.bind(Int64(records[index].writer))
                unsafe binder.bind(Int64(records[index].sequence))
                unsafe binder.bind(records[index].entry.time.microseconds)
                if records[index].entry.tenant == nil {
                    unsafe binder.bindNull()
                } else if part.tenantIsBlob {
                    unsafe binder.bindBlob(part.tenant)
                } else {
                    unsafe binder.bindText(part.tenant)
                }
                unsafe binder.bindBlob(part.body)
                unsafe binder.bindBlob(part.hash)
            }
            var code = unsafe binder.code
            if code == SQLITE_OK { code = unsafe sqlite3_step(statement.sqliteStatement) }
            guard code == SQLITE_DONE else {
                throw DatabaseError(resultCode: ResultCode(rawValue: code), message: self.db.lastErrorMessage)
            }
        }
    }

    /// Binds the parameters of a statement one after the other to parts of some bytes that outlive the bindings.
    @unsafe
    private struct Binder {
        private let statement: SQLiteStatement
        private let base: UnsafeRawBufferPointer
        private var position: CInt = 0
        /// The first failure, if any.
        private(set) var code = SQLITE_OK

        init(statement: SQLiteStatement, base: UnsafeRawBufferPointer) {
            unsafe self.statement = statement
            unsafe self.base = base
        }

        mutating func bind(_ number: Int64) {
            unsafe self.position += 1
            unsafe self.note(sqlite3_bind_int64(self.statement, self.position, number))
        }

        mutating func bindNull() {
            unsafe self.position += 1
            unsafe self.note(sqlite3_bind_null(self.statement, self.position))
        }

        mutating func bindBlob(_ range: Range<Int>) {
            unsafe self.position += 1
            let start = unsafe self.base.baseAddress.map { unsafe $0 + range.lowerBound }
            unsafe self.note(sqlite3_bind_blob(self.statement, self.position, start, CInt(range.count), nil))
        }

        mutating func bindText(_ range: Range<Int>) {
            unsafe self.position += 1
            let start = unsafe self.base.baseAddress.map {
                unsafe ($0 + range.lowerBound).assumingMemoryBound(to: CChar.self)
            }
            unsafe self.note(sqlite3_bind_text(self.statement, self.position, start, CInt(range.count), nil))
        }

        private mutating func note(_ code: CInt) {
            if unsafe self.code == SQLITE_OK { unsafe self.code = code }
        }
    }

    /// Lets a repeated commit pass, which meets its own records.
    ///
    /// Anything else in their places is another writer's, and to go on would break the chain without anybody noticing.
    private func requireSame(_ records: [ChainedAuditRecord]) throws {
        for record in records {
            let hash = try Data.fetchOne(
                self.db,
                sql: "SELECT hash FROM audit_records WHERE writer = ? AND sequence = ?",
                arguments: [record.writer, record.sequence]
            )
            guard hash == Data(record.hash) else {
                throw GatewayError(
                    .conflict,
                    "Place \(record.sequence) of audit writer \(record.writer) holds another record"
                )
            }
        }
    }

    private static func insertStatement(rows: Int) -> String {
        let values = Array(repeating: "(?, ?, ?, ?, ?, ?)", count: rows).joined(separator: ", ")
        return """
            INSERT INTO audit_records (writer, sequence, time, tenant, body, hash) VALUES \(values)
            ON CONFLICT (writer, sequence) DO NOTHING
            """
    }
}
