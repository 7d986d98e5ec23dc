package import GatewayCore
package import StrictJSON

/// A record with its place and hash as members of a JSON object, as the second sink and exports have it.
///
/// All that the hash covers is there, so that a chain can be verified by its text alone.
package enum AuditRecordText {
    /// Adds a record's members to an object.
    package static func write(_ chained: ChainedAuditRecord, to writer: inout JSONWriter) {
        let record = chained.record
        writer.member("writer", chained.writer)
        writer.member("seq", chained.sequence)
        writer.member("time", record.time.rfc3339)
        writer.key("time_us")
        writer.integer(record.time.microseconds)
        if let tenant = record.tenant { writer.member("tenant", tenant) }
        if record.tenantUID != 0 { writer.member("tenant_uid", Hex.text(AuditBody.bytes(of: record.tenantUID))) }
        writer.member("principal", record.principal)
        writer.member("method", record.method)
        writer.member("action", record.action)
        writer.member("outcome", record.outcome.rawValue)
        if let code = record.code { writer.member("code", code) }
        if let messageID = record.messageID { writer.member("message", messageID) }
        writer.member("target_kind", record.targetKind)
        writer.key("targets")
        writer.beginArray()
        for start in stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount) {
            writer.string(Hex.text(record.targets[start...].prefix(Pseudonym.byteCount)))
        }
        writer.endArray()
        if let object = record.object { writer.member("object", object) }
        writer.member("recipients", record.recipients)
        writer.member("accepted", record.accepted)
        writer.member("bytes", record.bytes)
        if let upstreamCode = record.upstreamCode { writer.member("upstream_code", upstreamCode) }
        if let fcmMessageID = record.fcmMessageID { writer.member("fcm_message_id", fcmMessageID) }
        writer.member("request_id", record.requestID)
        if let traceID = record.traceID { writer.member("trace_id", traceID) }
        writer.member("hash", Hex.text(chained.hash))
    }

    /// The record of an object; `nil` where a member is missing or of the wrong kind.
    package static func read(_ root: StrictJSON.JSONValue) -> ChainedAuditRecord? {
        guard let writer = root.integer("writer"), let sequence = root.integer("seq"),
            let time = root.integer("time_us"), let principal = root.text("principal"),
            let method = root.text("method"), let action = root.text("action"),
            let outcome = root.text("outcome").flatMap({ AuditRecord.Outcome(rawValue: $0) }),
            let targetKind = root.text("target_kind"), let targets = root["targets"]?.elements,
            let recipients = root.integer("recipients"), let accepted = root.integer("accepted"),
            let bytes = root.integer("bytes"), let requestID = root.text("request_id"), let hash = root.hex("hash")
        else { return nil }
        var record = AuditRecord(
            time: Timestamp(microseconds: Int64(time)),
            tenant: root.text("tenant"),
            principal: principal,
            action: action,
            outcome: outcome,
            requestID: requestID
        )
        for target in targets {
            guard let part = target.string.flatMap({ Hex.bytes($0) }) else { return nil }
            record.targets += part
        }
        for byte in root.hex("tenant_uid") ?? [] { record.tenantUID = record.tenantUID << 8 | UInt64(byte) }
        (record.method, record.targetKind, record.object) = (method, targetKind, root.text("object"))
        (record.recipients, record.accepted, record.bytes) = (recipients, accepted, bytes)
        (record.code, record.upstreamCode) = (root.text("code"), root.text("upstream_code"))
        (record.fcmMessageID, record.messageID) = (root.text("fcm_message_id"), root.text("message"))
        record.traceID = root.text("trace_id")
        return ChainedAuditRecord(writer: writer, sequence: sequence, entry: AuditEntry(record), hash: hash)
    }
}
