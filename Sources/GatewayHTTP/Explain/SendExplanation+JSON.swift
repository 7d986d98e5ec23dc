import FCMModel
import GatewayCore
package import NIOCore
import StrictJSON

extension SendExplanation {
    /// The explanation as the REST contract writes it.
    package var json: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 4_096)
        writer.beginObject()
        writer.member("upstream", self.upstream.rawValue)
        writer.member("request_count", self.requestCount)
        writer.key("requests")
        writer.beginArray()
        for request in self.requests { writer.write(request) }
        writer.endArray()
        writer.key("payload")
        writer.beginObject()
        writer.member("bytes", self.payloadBytes)
        writer.member("limit", self.target.maxPayloadBytes)
        writer.endObject()
        writer.key("fields")
        writer.beginArray()
        for field in self.fields { writer.write(field) }
        writer.endArray()
        writer.key("warnings")
        writer.beginArray()
        for warning in self.warnings {
            writer.beginObject()
            writer.member("pointer", warning.pointer)
            writer.member("detail", warning.detail)
            writer.endObject()
        }
        writer.endArray()
        if let refusal = self.refusal { writer.write(refusal) }
        writer.key("limits")
        writer.write(self.limits)
        writer.endObject()
        return writer.finish()
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ request: PlannedRequest) {
        self.beginObject()
        self.member("method", "POST")
        self.member("url", request.url)
        self.key("headers")
        self.beginObject()
        self.member("Authorization", request.maskedAuthorization)
        self.member("Content-Type", "application/json")
        self.endObject()
        self.key("body")
        if let body = try? JSONDocument(parsing: request.body) { self.value(body.root) } else { self.null() }
        self.endObject()
    }

    fileprivate mutating func write(_ field: FieldTrace) {
        self.beginObject()
        self.member("pointer", field.pointer)
        self.key("becomes")
        self.beginArray()
        for member in field.becomes { self.string(member) }
        self.endArray()
        self.endObject()
    }

    fileprivate mutating func write(_ refusal: Refusal) {
        self.key("refused")
        self.beginObject()
        self.member("code", refusal.code.rawValue)
        self.member("detail", refusal.detail ?? refusal.code.explanation)
        if let field = refusal.fields.first { self.member("pointer", field.path) }
        self.endObject()
    }

    fileprivate mutating func write(_ limits: LimitStatus) {
        self.beginObject()
        self.key("tenant")
        self.beginArray()
        for quota in limits.tenant { self.write(quota, scope: .tenant) }
        self.endArray()
        self.key("targets")
        self.beginArray()
        for entries in limits.recipients {
            self.beginArray()
            for entry in entries { self.write(entry.quota, scope: entry.scope) }
            self.endArray()
        }
        self.endArray()
        self.endObject()
    }

    private mutating func write(_ quota: QuotaStatus, scope: LimitScope) {
        self.beginObject()
        self.member("scope", scope.rawValue)
        self.member("rate", quota.policy.rate)
        self.member("per_s", quota.policy.periodSeconds)
        self.member("burst", quota.policy.burst)
        self.member("remaining", quota.remaining)
        self.member("reset_s", quota.resetSeconds)
        self.endObject()
    }
}
