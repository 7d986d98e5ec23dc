package import NIOCore
import StrictJSON

/// Writes requests to the Instance ID API.
package enum InstanceIDRequest {
    package static let maxTokens = 1_000

    package static func batch(_ change: SubscriptionChange, _ tokens: [String], _ topic: TopicName) -> TopicRequest {
        var writer = JSONWriter(reservingCapacity: 128 + tokens.reduce(0) { $0 + $1.utf8.count + 4 })
        writer.beginObject()
        writer.member("to", TopicName.legacyPrefix + topic.text)
        writer.member("registration_tokens", tokens)
        writer.endObject()
        let path =
            switch change {
            case .subscribe: "/iid/v1:batchAdd"
            case .unsubscribe: "/iid/v1:batchRemove"
            }
        return TopicRequest(
            .post,
            path,
            of: path,
            body: writer.finish(),
            maxAnswerBytes: Target.maxAnswerBytes(recipients: tokens.count)
        )
    }

    package static func info(_ token: String) -> TopicRequest {
        TopicRequest(.get, "/iid/info/\(PercentEncoding.encoded(token))?details=true", of: "/iid/info/{token}")
    }
}

/// A batch of subscriptions from a caller of the Instance ID API.
package struct InstanceIDBatch: Sendable, Hashable {
    package let topic: TopicName
    /// The devices, in their order and with repetitions.
    package let tokens: [String]

    /// Reads a body. Unknown members are ignored.
    package init(parsing body: ByteBuffer) throws(Refusal) {
        let root: JSONValue
        do {
            root = try JSONDocument(parsing: body).root
        } catch {
            throw Refusal(.malformedJSON, "\(error.reason) at position \(error.offset)")
        }
        guard root.members != nil else { throw Refusal(.malformedJSON, "The body must be an object") }
        guard let topic = root["to"]?.string.flatMap(TopicName.init(legacy:)) else {
            throw Refusal(.invalidField, "to must be /topics/ and a topic's name")
        }
        guard PercentEncoding.isAddressable(topic.text) else {
            throw Refusal(.invalidField, "to must not name a topic that is only dots")
        }
        let list = root["registration_tokens"]
        let most = InstanceIDRequest.maxTokens
        guard let count = list?.elements?.count, (1...most).contains(count) else {
            throw Refusal(.invalidField, "registration_tokens must be an array of 1 to \(most) strings")
        }
        guard let tokens = list?.texts else {
            throw Refusal(.invalidField, "registration_tokens must hold only strings")
        }
        self.topic = topic
        self.tokens = tokens
    }
}
