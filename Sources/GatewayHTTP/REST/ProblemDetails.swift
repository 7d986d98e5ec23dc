package import EventLoopHTTP
package import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Problem details (RFC 9457): REST's refusals.
extension Refusal {
    package var response: HTTPServerResponse { self.response() }

    /// The refusal as problem details, optionally with another status than the code's and with the allowed methods.
    func response(
        status: HTTPResponse.Status? = nil,
        allow methods: [String] = []
    ) -> HTTPServerResponse {
        var response = HTTPServerResponse(self.reply(status: status))
        if !methods.isEmpty { response.headers.append(.allow, methods.joined(separator: ", ")) }
        return response
    }

    /// The refusal as problem details, with the id of the refused message.
    func reply(messageID: String? = nil, status ownStatus: HTTPResponse.Status? = nil) -> Reply {
        let status = ownStatus ?? HTTPResponse.Status(code: self.code.status)
        let retryAfter = self.delay(status)
        return Reply(
            status: status.code,
            contentType: "application/problem+json",
            self.problem(status: status, retryAfter: retryAfter, messageID: messageID),
            retryAfter: retryAfter,
            code: self.code
        )
    }

    /// The delay for `Retry-After`; 429 and 503 always have one.
    private func delay(_ status: HTTPResponse.Status) -> Int? {
        self.retryAfter ?? (status == .tooManyRequests || status == .serviceUnavailable ? 5 : nil)
    }

    private func problem(status: HTTPResponse.Status, retryAfter: Int?, messageID: String?) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 384)
        writer.beginObject()
        writer.member("type", "/problems/\(self.code.rawValue)")
        writer.member("title", self.code.title)
        writer.member("status", status.code)
        writer.member("code", self.code.rawValue)
        writer.member("detail", self.detail ?? self.code.explanation)
        writer.member("retryable", self.code.isRetryable)
        if let action = self.code.action { writer.member("action", action.rawValue) }
        if let retryAfter { writer.member("retry_after", retryAfter) }
        if let limitedBy = self.limitedBy { writer.member("limited_by", limitedBy.rawValue) }
        if let position = self.position {
            writer.member("offset", position.offset)
            if !position.pointer.isEmpty { writer.member("pointer", position.pointer) }
        }
        if let messageID { writer.member("id", messageID) }
        if let limit = self.limit {
            writer.beginArray("violated_policies")
            writer.string(limit)
            writer.endArray()
        }
        if !self.fields.isEmpty {
            writer.beginArray("errors")
            for field in self.fields {
                writer.beginObject()
                writer.member("pointer", field.path)
                writer.member("code", field.code.rawValue)
                writer.member("detail", field.detail)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
        return writer.finish()
    }

    static func messageTooBig(_ payloadBytes: Int, to target: Target) -> Refusal {
        let limit = target.maxPayloadBytes
        let text = "The payload has \(payloadBytes) bytes; at most \(limit) are allowed for this target"
        return Refusal(.messageTooBig, text)
    }
}
