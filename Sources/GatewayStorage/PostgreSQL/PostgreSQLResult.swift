import CLibPQ

/// A statement's result from libpq: its outcome, and rows in binary form.
@safe
final class PostgreSQLResult {
    private let result: OpaquePointer

    /// Takes ownership of a result, which is freed with this object.
    init(_ result: OpaquePointer) {
        unsafe self.result = result
    }

    deinit {
        unsafe PQclear(self.result)
    }

    private var status: ExecStatusType { unsafe PQresultStatus(self.result) }

    var isPipelineEnd: Bool { self.status == PGRES_PIPELINE_SYNC }

    /// Why the statement failed. A statement that was skipped after another one's failure has no reason of its own.
    var failure: (any Error)? {
        switch self.status {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_SINGLE_TUPLE, PGRES_PIPELINE_SYNC:
            return nil
        case PGRES_PIPELINE_ABORTED:
            return PostgreSQLError(.unsupported, "skipped after another statement's failure")
        default:
            // libpq owns the texts for as long as the result lives. They are copied at once.
            guard let state = unsafe fcmgw_pq_state(self.result) else {
                // Without an SQLSTATE the error is libpq's: the connection broke.
                return PostgreSQLError(.disconnected, "the connection broke")
            }
            let message = unsafe fcmgw_pq_message(self.result).map { unsafe String(cString: $0) } ?? ""
            let error = PostgreSQLError(state: unsafe String(cString: state), message: message)
            if error.isDamage { return DamagedFile(cause: error) }
            return error
        }
    }

    /// The number of rows that the statement changed.
    var changes: Int { Int(unsafe fcmgw_pq_changes(self.result)) }

    func isCommand(_ name: String) -> Bool { unsafe fcmgw_pq_is_command(self.result, name) == 1 }

    var rowCount: Int { Int(unsafe PQntuples(self.result)) }

    var names: [String] {
        var names: [String] = []
        for column in 0..<(unsafe PQnfields(self.result)) {
            guard let name = unsafe PQfname(self.result, column) else { break }
            names.append(unsafe String(cString: name))
        }
        return names
    }

    /// Returns a row's values. Throws for a type that none of the gateway's statements returns.
    func values(_ row: Int) throws(PostgreSQLError) -> [SQLValue] {
        let columns = unsafe PQnfields(self.result)
        var values: [SQLValue] = []
        values.reserveCapacity(Int(columns))
        for column in 0..<columns { values.append(try self.value(CInt(row), column)) }
        return values
    }

    /// Types are identified by their numbers in the server's catalog `pg_type`, which never change.
    private func value(_ row: CInt, _ column: CInt) throws(PostgreSQLError) -> SQLValue {
        if unsafe PQgetisnull(self.result, row, column) == 1 { return .null }
        let type = unsafe PQftype(self.result, column)
        switch type {
        // bool, int8, int2, int4
        case 16, 20, 21, 23:
            return .integer(unsafe fcmgw_pq_integer(self.result, row, column))
        // float8
        case 701:
            return .double(unsafe fcmgw_pq_double(self.result, row, column))
        // name, text, varchar
        case 19, 25, 1043:
            let bytes = self.bytes(row, column)
            return String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .blob(bytes)
        // bytea
        case 17:
            return .blob(self.bytes(row, column))
        default:
            throw PostgreSQLError(.unsupported, "a column of the unexpected type \(type)")
        }
    }

    private func bytes(_ row: CInt, _ column: CInt) -> [UInt8] {
        // libpq owns the pointer for as long as the result lives. The bytes are copied at once.
        guard let start = unsafe PQgetvalue(self.result, row, column) else { return [] }
        let count = Int(unsafe PQgetlength(self.result, row, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
