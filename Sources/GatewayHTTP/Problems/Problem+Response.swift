package import EventLoopHTTP
import FCMModel
import HTTPTypes
import NIOCore
import StrictJSON

extension Problem {
    /// The problem as an answer.
    package var response: HTTPServerResponse {
        var headers: HTTPHeaderLines = [.contentType: "application/problem+json"]
        if let retryAfter = self.retryAfterHeader { headers.append(.retryAfter, String(retryAfter)) }
        if !self.allowedMethods.isEmpty { headers.append(.allow, self.allowedMethods.joined(separator: ", ")) }
        if self.code == .unauthenticated { headers.append(.wwwAuthenticate, "Bearer") }
        var response = HTTPServerResponse(status: self.status, headers: headers, body: self.body)
        response.code = self.code.rawValue
        return response
    }

    private var body: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 384)
        writer.beginObject()
        writer.member("type", "/problems/\(self.code.rawValue)")
        writer.member("title", self.code.title)
        writer.member("status", self.status.code)
        writer.member("code", self.code.rawValue)
        writer.member("detail", self.detail ?? self.code.explanation)
        writer.member("retryable", self.code.isRetryable)
        if let action = self.code.action { writer.member("action", action.rawValue) }
        if let retryAfter = self.retryAfterHeader { writer.member("retry_after", retryAfter) }
        if let limitedBy = self.limitedBy { writer.member("limited_by", limitedBy.rawValue) }
        if let offset = self.offset { writer.member("offset", offset) }
        if let pointer = self.pointer { writer.member("pointer", pointer) }
        if let messageID = self.messageID { writer.member("id", messageID) }
        if !self.violatedPolicies.isEmpty {
            writer.key("violated_policies")
            writer.beginArray()
            for policy in self.violatedPolicies { writer.string(policy) }
            writer.endArray()
        }
        if !self.errors.isEmpty {
            writer.key("errors")
            writer.beginArray()
            for error in self.errors {
                writer.beginObject()
                writer.member("pointer", error.pointer.description)
                writer.member("code", error.code.rawValue)
                writer.member("detail", error.detail)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
        return writer.finish()
    }
}
