import GatewayCore
import NIOCore
import StrictJSON

/// A page of audit records.
///
/// Records' places are operators' alone: they count the records of all tenants.
struct AuditPageAnswer {
    let page: AuditPage
    /// Who reads: a tenant, by its uid, or an operator.
    let tenantUID: UInt64?
    let cursors: AuditCursorSealer

    var body: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 64 + self.page.records.count * 512)
        writer.beginObject()
        writer.key("records")
        writer.beginArray()
        for record in self.page.records {
            writer.write(record, showsPlace: self.tenantUID == nil)
        }
        writer.endArray()
        if let next = self.page.next.flatMap({ self.cursors.seal($0, for: self.tenantUID) }) {
            writer.member("next_cursor", Cursor.text(of: next))
        }
        writer.endObject()
        return writer.finish()
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ chained: ChainedAuditRecord, showsPlace: Bool) {
        let record = chained.record
        self.beginObject()
        if showsPlace {
            self.member("writer", chained.writer)
            self.member("seq", chained.sequence)
        }
        self.member("time", record.time.rfc3339)
        if let tenant = record.tenant { self.member("tenant", tenant) }
        if showsPlace, record.tenant != nil {
            self.member("tenant_uid", Hex.text(AuditBody.bytes(of: record.tenantUID)))
        }
        self.member("principal", record.principal)
        if !record.method.isEmpty { self.member("method", record.method) }
        self.member("action", record.action)
        self.member("outcome", record.outcome.rawValue)
        if let code = record.code { self.member("code", code) }
        if let messageID = record.messageID { self.member("message", messageID) }
        if !record.targetKind.isEmpty { self.writeTarget(of: record) }
        if let object = record.object { self.member("object", object) }
        if let upstreamCode = record.upstreamCode { self.member("upstream_code", upstreamCode) }
        if let fcmMessageID = record.fcmMessageID { self.member("fcm_message_id", fcmMessageID) }
        if !record.requestID.isEmpty { self.member("request_id", record.requestID) }
        if let traceID = record.traceID { self.member("trace_id", traceID) }
        self.member("hash", Hex.text(chained.hash))
        self.endObject()
    }

    private mutating func writeTarget(of record: AuditRecord) {
        self.member("target_kind", record.targetKind)
        self.member("recipients", record.recipients)
        self.member("accepted", record.accepted)
        self.member("bytes", record.bytes)
        self.key("targets")
        self.beginArray()
        for start in stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount) {
            self.string(Hex.text(record.targets[start..<min(start + Pseudonym.byteCount, record.targets.count)]))
        }
        self.endArray()
    }
}
