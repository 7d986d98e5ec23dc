import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads the columns of a row by name and refuses what does not fit, where GRDB's own subscripts would end the process.
struct RowReader {
    private let row: Row
    private let table: String

    init(_ row: Row, of table: String) {
        self.row = row
        self.table = table
    }

    /// A value that is always there.
    ///
    /// - Throws: ``DamagedValue``.
    func value<T: DatabaseValueConvertible>(_ column: String, as type: T.Type = T.self) throws(DamagedValue) -> T {
        guard let value: T = try self.optional(column) else { throw self.damaged(column) }
        return value
    }

    /// A value that may be absent.
    ///
    /// - Throws: ``DamagedValue``.
    func optional<T: DatabaseValueConvertible>(
        _ column: String,
        as type: T.Type = T.self
    ) throws(DamagedValue) -> T? {
        let stored: DatabaseValue = self.row[column]
        if stored.isNull { return nil }
        guard let value = T.fromDatabaseValue(stored) else { throw self.damaged(column) }
        return value
    }

    /// A value that the gateway's own types must accept.
    ///
    /// - Throws: ``DamagedValue``.
    func parsed<T>(_ column: String, _ parse: (String) -> T?) throws(DamagedValue) -> T {
        guard let value = parse(try self.value(column)) else { throw self.damaged(column) }
        return value
    }

    /// A moment.
    ///
    /// - Throws: ``DamagedValue``.
    func time(_ column: String) throws(DamagedValue) -> Timestamp {
        Timestamp(microseconds: try self.value(column))
    }

    /// A moment that may be absent.
    ///
    /// - Throws: ``DamagedValue``.
    func optionalTime(_ column: String) throws(DamagedValue) -> Timestamp? {
        try self.optional(column, as: Int64.self).map(Timestamp.init(microseconds:))
    }

    /// The sealed secret of the columns `wrapped_key` and `sealed`.
    ///
    /// - Throws: ``DamagedValue``.
    func envelope() throws(DamagedValue) -> Envelope {
        Envelope(wrappedKey: try self.value("wrapped_key"), sealed: try self.value("sealed"))
    }

    /// The bytes of a column.
    ///
    /// - Throws: ``DamagedValue``.
    func bytes(_ column: String) throws(DamagedValue) -> [UInt8] {
        [UInt8](try self.value(column, as: Data.self))
    }

    /// The error for a column.
    func damaged(_ column: String) -> DamagedValue {
        DamagedValue(table: self.table, column: column)
    }
}
