import CLibPQ

/// What libpq hands over of a statement: an outcome, and rows in binary form.
@safe
final class PostgreSQLResult {
    private let result: OpaquePointer

    /// Takes over a result, which is freed with this object.
    init(_ result: OpaquePointer) {
        unsafe self.result = result
    }

    deinit {
        unsafe PQclear(self.result)
    }

    private var status: ExecStatusType { unsafe PQresultStatus(self.result) }

    var isPipelineEnd: Bool { self.status == PGRES_PIPELINE_SYNC }

    /// Why the statement failed; one that was left out after the failure of another has no reason of its own.
    var failure: (any Error)? {
        switch self.status {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_SINGLE_TUPLE, PGRES_PIPELINE_SYNC:
            return nil
        case PGRES_PIPELINE_ABORTED:
            return PostgreSQLError(.unsupported, "left out after another statement's failure")
        default:
            // The texts are libpq's for as long as the result; they are copied at once.
            guard let state = unsafe fcmgw_pq_state(self.result) else {
                // It comes from libpq, which found the connection broken.
                return PostgreSQLError(.disconnected, "the connection broke")
            }
            let message = unsafe fcmgw_pq_message(self.result).map { unsafe String(cString: $0) } ?? ""
            let error = PostgreSQLError(state: unsafe String(cString: state), message: message)
            if error.isDamage { return DamagedFile(cause: error) }
            return error
        }
    }

    /// How many rows the statement changed.
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

    /// A row's values; throws for a type that no statement of the gateway has.
    func values(_ row: Int) throws(PostgreSQLError) -> [SQLValue] {
        let columns = unsafe PQnfields(self.result)
        var values: [SQLValue] = []
        values.reserveCapacity(Int(columns))
        for column in 0..<columns { values.append(try self.value(CInt(row), column)) }
        return values
    }

    /// Types are told by their numbers, which the server's catalog `pg_type` holds for ever.
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
        // The pointer is libpq's for as long as the result; what it points to is copied at once.
        guard let start = unsafe PQgetvalue(self.result, row, column) else { return [] }
        let count = Int(unsafe PQgetlength(self.result, row, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
