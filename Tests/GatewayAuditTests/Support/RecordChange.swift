import GatewayAudit
import GatewayTestKit
import Testing

/// A change of one field of an audit record.
struct RecordChange: Sendable, CustomTestStringConvertible {
    let field: String
    let apply: @Sendable (inout AuditRecord) -> Void

    var testDescription: String { self.field }

    /// Changes of every field: to another value, to nil, and to its neighbour's value.
    static let all = [
        RecordChange(field: "time") { $0.time = $0.time.advanced(by: .microseconds(1)) },
        RecordChange(field: "tenant") { $0.tenant = "globex" },
        RecordChange(field: "tenant gone") { $0.tenant = nil },
        RecordChange(field: "tenant empty") { $0.tenant = "" },
        RecordChange(field: "one bit of the tenant's uid") { $0.tenantUID ^= 1 << 63 },
        RecordChange(field: "principal") { $0.principal = "admin" },
        RecordChange(field: "method") { $0.method = "PUT" },
        RecordChange(field: "action") { $0.action = "message.validate" },
        RecordChange(field: "targetKind") { $0.targetKind = "token" },
        RecordChange(field: "one bit of targets") { $0.targets[20] ^= 1 },
        RecordChange(field: "a target less") { $0.targets.removeLast(16) },
        RecordChange(field: "targets in another order") { $0.targets = Array($0.targets[16...] + $0.targets[..<16]) },
        RecordChange(field: "a result's code") { $0.results[1].code = "unregisteree" },
        RecordChange(field: "a result's message id") { $0.results[0].fcmMessageID = nil },
        RecordChange(field: "results in another order") { $0.results.reverse() },
        RecordChange(field: "a result less") { $0.results.removeLast() },
        RecordChange(field: "object") { $0.object = "thing" },
        RecordChange(field: "recipients") { $0.recipients += 1 },
        RecordChange(field: "accepted") { $0.accepted -= 1 },
        RecordChange(field: "recipients and accepted swapped") {
            ($0.recipients, $0.accepted) = ($0.accepted, $0.recipients)
        },
        RecordChange(field: "bytes") { $0.bytes = -$0.bytes },
        RecordChange(field: "outcome") { $0.outcome = .accepted },
        RecordChange(field: "code") { $0.code = "unregisteree" },
        RecordChange(field: "code gone") { $0.code = nil },
        RecordChange(field: "upstreamCode") { $0.upstreamCode = "201" },
        RecordChange(field: "code and upstreamCode swapped") {
            ($0.code, $0.upstreamCode) = ($0.upstreamCode, $0.code)
        },
        RecordChange(field: "a letter from code to upstreamCode") {
            $0.code = "unregistere"
            $0.upstreamCode = "d200"
        },
        RecordChange(field: "fcmMessageID") { $0.fcmMessageID = "" },
        RecordChange(field: "messageID") { $0.messageID = "id-u" },
        RecordChange(field: "requestID") { $0.requestID = "request-2" },
        RecordChange(field: "traceID") { $0.traceID = nil },
        RecordChange(field: "afterCheckpoint") { $0.afterCheckpoint = 1 },
        RecordChange(field: "continuesWriter") { $0.continuesWriter = 1 },
    ]

    /// The record of a partly accepted send.
    static let original: AuditRecord = {
        var record = AuditRecord(
            time: .sample,
            tenant: "acme",
            principal: "key:abcdefghij",
            action: "message.send",
            outcome: .partial,
            requestID: "request-1"
        )
        record.tenantUID = 0x3f9a_c41b_e027_5d86
        record.method = "POST"
        record.targetKind = "tokens"
        record.targets = Array(0..<32)
        record.results = [.init(fcmMessageID: "0:77"), .init(code: "unregistered")]
        record.recipients = 2
        record.accepted = 1
        record.bytes = 42
        record.code = "unregistered"
        record.upstreamCode = "200"
        record.messageID = "id-ü"
        record.traceID = "trace-1"
        return record
    }()
}
