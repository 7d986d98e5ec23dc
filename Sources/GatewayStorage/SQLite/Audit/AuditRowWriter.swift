import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Inserts records of the audit within a transaction.
struct AuditRowWriter {
    /// Rows of one statement.
    private static let rowsPerStatement = 24

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
                try Self.execute(statement, rest.prefix(Self.rowsPerStatement))
                rest = rest.dropFirst(Self.rowsPerStatement)
            }
        }
        if !rest.isEmpty {
            let statement = try self.db.cachedStatement(sql: Self.insertOne)
            for index in rest.indices {
                try Self.execute(statement, rest[index...index])
            }
        }
        if self.db.totalChangesCount - changesBefore < records.count {
            try self.requireSame(records)
        }
    }

    private static func execute(_ statement: Statement, _ records: ArraySlice<ChainedAuditRecord>) throws {
        var values: [DatabaseValue] = []
        values.reserveCapacity(records.count * AuditColumn.allCases.count)
        for record in records {
            self.append(record, to: &values)
        }
        // Checked would mean two more copies of the list; its length is the statement's by construction.
        statement.setUncheckedArguments(StatementArguments(values))
        try statement.execute()
    }

    /// Appends a record's values in the columns' order.
    private static func append(_ chained: ChainedAuditRecord, to values: inout [DatabaseValue]) {
        let record = chained.record
        values.append(chained.writer.databaseValue)
        values.append(chained.sequence.databaseValue)
        values.append(record.time.microseconds.databaseValue)
        values.append(Self.value(record.tenant))
        values.append(Self.value(record.principal))
        values.append(Self.value(record.method))
        values.append(Self.value(record.action))
        values.append(Self.value(record.targetKind))
        values.append(Data(record.targets).databaseValue)
        values.append(Self.value(record.object))
        values.append(record.recipients.databaseValue)
        values.append(record.accepted.databaseValue)
        values.append(record.bytes.databaseValue)
        values.append(record.outcome.rawValue.databaseValue)
        values.append(Self.value(record.code))
        values.append(Self.value(record.upstreamCode))
        values.append(Self.value(record.fcmMessageID))
        values.append(Self.value(record.messageID))
        values.append(Self.value(record.requestID))
        values.append(Self.value(record.traceID))
        values.append(Data(chained.hash).databaseValue)
    }

    /// Text ends at its first zero byte when it is bound, and what an upstream says may hold one; such text is kept as
    /// a blob, which the reader takes for text as well.
    private static func value(_ text: String?) -> DatabaseValue {
        guard let text else { return .null }
        return text.utf8.contains(0) ? Data(text.utf8).databaseValue : text.databaseValue
    }

    /// A repeated commit meets its own records. Anything else in their places is another writer's, and to go on would
    /// break the chain without anybody noticing.
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
        let marks = Array(repeating: "?", count: AuditColumn.allCases.count).joined(separator: ", ")
        let values = Array(repeating: "(\(marks))", count: rows).joined(separator: ", ")
        return """
            INSERT INTO audit_records (\(AuditColumn.list)) VALUES \(values)
            ON CONFLICT (writer, sequence) DO NOTHING
            """
    }
}
