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
    /// The body's bytes.
    package let body: ByteBuffer

    private init(status: Int, json writer: consuming JSONWriter) {
        self.status = status
        self.contentType = "application/json; charset=UTF-8"
        self.body = writer.finish()
    }

    private init(status: Int, text: String) {
        self.status = status
        self.contentType = "text/plain; charset=UTF-8"
        self.body = ByteBuffer(string: text)
    }

    /// A plain text answer.
    package static func text(status: Int, _ text: String) -> LegacyReply {
        LegacyReply(status: status, text: text)
    }

    /// 400 `{"error":"InvalidParameters"}` with the reason beside it.
    package static func invalidParameters(reason: String) -> LegacyReply {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("error", LegacyErrorName.invalidParameters.rawValue)
        writer.member("reason", reason)
        writer.endObject()
        return LegacyReply(status: 400, json: writer)
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
        return LegacyReply(status: 200, json: writer)
    }
}
