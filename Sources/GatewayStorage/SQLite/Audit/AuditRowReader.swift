import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads records of the audit byte for byte, from rows of ``columns``.
enum AuditRowReader {
    /// What to select.
    static let columns = "writer, sequence, time, tenant, body, hash"
    /// A record's tenant's uid in SQL, as the bytes that stand in its body.
    static let tenantUID =
        "substr(body, \(AuditBody.tenantUIDRange.lowerBound + 1), \(AuditBody.tenantUIDRange.count))"

    /// The record of a row.
    ///
    /// A row that the gateway would not have written is read as well, since finding such rows is what a verifier is
    /// for: its hash comes out empty, which no record's is.
    static func record(_ row: Row) -> ChainedAuditRecord {
        do {
            let time = Timestamp(microseconds: try self.number(row, 2))
            let tenant = try self.optionalText(row, 3)
            let body = try self.blob(row, 4)
            guard let entry = AuditEntry(time: time, tenant: tenant, body: body) else { throw self.damaged }
            return ChainedAuditRecord(
                writer: Int(try self.number(row, 0)),
                sequence: Int(try self.number(row, 1)),
                entry: entry,
                hash: try self.blob(row, 5)
            )
        } catch {
            return self.unreadable(row)
        }
    }

    private static func unreadable(_ row: Row) -> ChainedAuditRecord {
        let nothing = AuditRecord(
            time: Timestamp(microseconds: (try? self.number(row, 2)) ?? 0),
            tenant: nil,
            principal: "",
            action: "",
            outcome: .failed,
            requestID: ""
        )
        return ChainedAuditRecord(
            writer: Int((try? self.number(row, 0)) ?? 0),
            sequence: Int((try? self.number(row, 1)) ?? 0),
            entry: AuditEntry(nothing),
            hash: []
        )
    }

    private static func number(_ row: Row, _ index: Int) throws(DamagedValue) -> Int64 {
        let value: DatabaseValue = row[index]
        guard case .int64(let number) = value.storage else { throw self.damaged }
        return number
    }

    private static func blob(_ row: Row, _ index: Int) throws(DamagedValue) -> [UInt8] {
        let value: DatabaseValue = row[index]
        guard case .blob(let data) = value.storage else { throw self.damaged }
        return [UInt8](data)
    }

    private static func optionalText(_ row: Row, _ index: Int) throws -> String? {
        // GRDB's own conversion stops at a zero byte and repairs what is no UTF-8; both would hide a change.
        try row.withUnsafeData(atIndex: index) { data in
            guard let data else { return nil }
            guard let text = String(validating: data, as: UTF8.self) else { throw self.damaged }
            return text
        }
    }

    private static var damaged: DamagedValue {
        DamagedValue(table: "audit_records", column: "time, tenant, body or hash")
    }
}
