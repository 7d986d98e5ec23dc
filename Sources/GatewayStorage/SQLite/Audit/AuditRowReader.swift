import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads records of the audit byte for byte.
///
/// A row that the gateway would not have written is read as well, since finding such rows is what a verifier is for:
/// its hash comes out empty, which no record's is.
struct AuditRowReader {
    private let row: Row
    private var isDamaged = false

    init(_ row: Row) {
        self.row = row
    }

    /// The place; zeroes when it is damaged.
    mutating func position() -> AuditPosition {
        AuditPosition(writer: self.number(.writer), sequence: self.number(.sequence))
    }

    /// The whole record.
    mutating func record() -> ChainedAuditRecord {
        var record = AuditRecord(
            time: Timestamp(microseconds: Int64(self.number(.time))),
            tenant: self.optionalText(.tenant),
            principal: self.text(.principal),
            action: self.text(.action),
            outcome: self.outcome(),
            requestID: self.text(.requestID)
        )
        record.method = self.text(.method)
        record.targetKind = self.text(.targetKind)
        record.targets = self.blob(.targets)
        record.object = self.optionalText(.object)
        record.recipients = self.number(.recipients)
        record.accepted = self.number(.accepted)
        record.bytes = self.number(.bytes)
        record.code = self.optionalText(.code)
        record.upstreamCode = self.optionalText(.upstreamCode)
        record.fcmMessageID = self.optionalText(.fcmMessageID)
        record.messageID = self.optionalText(.messageID)
        record.traceID = self.optionalText(.traceID)
        let position = self.position()
        let hash = self.blob(.hash)
        return ChainedAuditRecord(
            writer: position.writer,
            sequence: position.sequence,
            record: record,
            hash: self.isDamaged ? [] : hash
        )
    }

    mutating func number(_ column: AuditColumn) -> Int {
        let value: DatabaseValue = self.row[column.rawValue]
        guard case .int64(let stored) = value.storage, let number = Int(exactly: stored) else {
            self.isDamaged = true
            return 0
        }
        return number
    }

    mutating func optionalText(_ column: AuditColumn) -> String? {
        do {
            // GRDB's own conversion stops at a zero byte and repairs what is no UTF-8; both would hide a change.
            return try self.row.withUnsafeData(atIndex: column.rawValue) { data in
                guard let data else { return nil }
                guard let text = String(validating: data, as: UTF8.self) else {
                    throw DamagedValue(table: "audit_records", column: "\(column)")
                }
                return text
            }
        } catch {
            self.isDamaged = true
            return nil
        }
    }

    mutating func text(_ column: AuditColumn) -> String {
        guard let text = self.optionalText(column) else {
            self.isDamaged = true
            return ""
        }
        return text
    }

    mutating func blob(_ column: AuditColumn) -> [UInt8] {
        let value: DatabaseValue = self.row[column.rawValue]
        guard case .blob(let data) = value.storage else {
            self.isDamaged = true
            return []
        }
        return [UInt8](data)
    }

    private mutating func outcome() -> AuditRecord.Outcome {
        guard let outcome = AuditRecord.Outcome(rawValue: self.text(.outcome)) else {
            self.isDamaged = true
            return .failed
        }
        return outcome
    }
}
