import GRDB
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
    private static let columns = 6
    /// Most bodies are shorter.
    private static let bodyCapacityBytes = 512

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
        // Not database values yet: GRDB would map those through a key path, which takes half as long as the insert.
        var values: [(any DatabaseValueConvertible)?] = []
        values.reserveCapacity(records.count * self.columns)
        var body: [UInt8] = []
        body.reserveCapacity(self.bodyCapacityBytes)
        // By index: a loop over the elements would copy every record.
        for index in records.indices {
            body.removeAll(keepingCapacity: true)
            AuditBody.encode(records[index].record, to: &body)
            values.append(records[index].writer)
            values.append(records[index].sequence)
            values.append(records[index].record.time.microseconds)
            values.append(self.value(records[index].record.tenant))
            values.append(Data(body))
            values.append(Data(records[index].hash))
        }
        // Checked would mean two more copies of the list; its length is the statement's by construction.
        statement.setUncheckedArguments(StatementArguments(values))
        try statement.execute()
    }

    /// Text ends at its first zero byte when it is bound, which would change the record; such text is kept as a blob,
    /// and the reader takes that for text as well.
    private static func value(_ text: String?) -> (any DatabaseValueConvertible)? {
        guard let text, text.utf8.contains(0) else { return text }
        return Data(text.utf8)
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
