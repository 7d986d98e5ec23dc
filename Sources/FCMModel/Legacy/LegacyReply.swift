package import NIOCore
import StrictJSON

/// An answer in the legacy protocol's own shapes, ready to be written to a client.
package struct LegacyReply: Sendable, Hashable {
    /// Which of the protocol's answers fits a request.
    package enum Shape: Sendable, Hashable {
        /// T5: one result for each recipient.
        case results(count: Int)
        /// T6: a single `error` or `message_id`, for topics and conditions.
        case single

        /// The shape that answers a message to this target.
        package init(target: Target) {
            switch target {
            case .topic, .condition: self = .single
            case .token, .tokens, .installation, .installations, .notificationKey:
                self = .results(count: target.recipientCount)
            }
        }
    }

    /// The HTTP status (T4).
    package let status: Int
    /// The value of `Content-Type`.
    package let contentType: String
    /// The value of `Retry-After` in seconds; `nil` where the header must be missing.
    package let retryAfter: Int?
    /// The body's bytes.
    package let body: ByteBuffer
    /// Why it is a refusal, or that of the first recipient that was refused, for logs.
    package var code: OutcomeCode?

    init(status: Int, json writer: consuming JSONWriter, retryAfter: Int? = nil, code: OutcomeCode? = nil) {
        self.code = code
        self.status = status
        self.contentType = "application/json; charset=UTF-8"
        self.retryAfter = retryAfter
        self.body = writer.finish()
    }

    init(status: Int, text: String, retryAfter: Int? = nil, code: OutcomeCode? = nil) {
        self.code = code
        self.status = status
        self.contentType = "text/plain; charset=UTF-8"
        self.retryAfter = retryAfter
        self.body = ByteBuffer(string: text)
    }

    /// The one answer to every credential that is missing, malformed, unknown or not enough (T4): clients look at the
    /// status alone.
    ///
    /// - Parameter code: which of these it is, for logs.
    /// - Returns: the answer.
    package static func unauthorized(_ code: OutcomeCode) -> LegacyReply {
        LegacyReply(status: 401, text: "Unauthorized", code: code)
    }

    /// The answer to a request that the server is too busy to read; when to come back is in `Retry-After`.
    package static func overloaded(retryAfter: Int) -> LegacyReply {
        LegacyReply(status: 503, text: "Service Unavailable", retryAfter: retryAfter, code: .overloaded)
    }

    /// A refusal in plain text.
    package static func text(status: Int, _ text: String, code: OutcomeCode) -> LegacyReply {
        LegacyReply(status: status, text: text, code: code)
    }

    /// The answer to a request that can't be read or holds a bad value.
    ///
    /// A form gets one line and status 200, which T4 demands where JSON gets 400: text where the body is no JSON object,
    /// else `{"error":"InvalidParameters"}` with the reason. The other errors of T9 travel in a 200, in the target's shape;
    /// the multicast id is a positive integer below 2⁵³.
    package init(refusing refusal: Refusal, format: LegacyFormat, shape: Shape, multicastID: Int) {
        let name = refusal.legacyErrorName
        switch (format, name) {
        case (.form, _):
            self = .formFailure(name, code: refusal.code)
        case (.json, _) where refusal.code == .malformedJSON:
            self = .text(status: 400, "JSON_PARSING_ERROR: \(refusal.detail ?? "")\n", code: refusal.code)
        case (.json, .invalidParameters):
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("error", name.rawValue)
            writer.member("reason", refusal.detail ?? refusal.code.title)
            writer.endObject()
            self.init(status: 400, json: writer, code: refusal.code)
        case (.json, _):
            self = .failure(name, shape: shape, multicastID: multicastID)
            self.code = refusal.code
        }
    }

    /// `Error=` and a name, the form's answer to a failure (T8).
    ///
    /// 200, but for the two errors that are a status of their own (TB-PLAIN).
    ///
    /// - Parameters:
    ///   - name: the error.
    ///   - retryAfter: seconds to wait.
    ///   - code: the same for logs, where it says more than the name.
    /// - Returns: the answer.
    package static func formFailure(
        _ name: LegacyErrorName,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) -> LegacyReply {
        LegacyReply(
            status: name.formStatus,
            text: "Error=\(name.rawValue)",
            retryAfter: retryAfter,
            code: code ?? name.outcomeCode
        )
    }

    /// 200 with one error for every recipient.
    package static func failure(_ name: LegacyErrorName, shape: Shape, multicastID: Int) -> LegacyReply {
        var writer = JSONWriter()
        writer.beginObject()
        switch shape {
        case .single:
            writer.member("error", name.rawValue)
        case .results(let count):
            writer.member("multicast_id", multicastID)
            writer.member("success", 0)
            writer.member("failure", count)
            writer.member("canonical_ids", 0)
            writer.key("results")
            writer.beginArray()
            for _ in 0..<count {
                writer.beginObject()
                writer.member("error", name.rawValue)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
        return LegacyReply(status: 200, json: writer, code: name.outcomeCode)
    }
}
