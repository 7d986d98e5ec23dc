/// The columns of `audit_records` in the order in which they are written and read.
enum AuditColumn: Int, CaseIterable {
    case writer
    case sequence
    case time
    case tenant
    case principal
    case method
    case action
    case targetKind
    case targets
    case object
    case recipients
    case accepted
    case bytes
    case outcome
    case code
    case upstreamCode
    case fcmMessageID
    case messageID
    case requestID
    case traceID
    case hash

    /// All columns as SQL.
    static let list = """
        writer, sequence, time, tenant, principal, method, action, target_kind, targets, object, recipients, accepted, \
        bytes, outcome, code, upstream_code, fcm_message_id, message_id, request_id, trace_id, hash
        """
}
