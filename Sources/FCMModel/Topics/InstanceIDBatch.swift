package import NIOCore
import StrictJSON

/// A batch of subscriptions as callers of the Instance ID API send it.
package struct InstanceIDBatch: Sendable, Hashable {
    /// The topic of `to`.
    package let topic: TopicName
    /// The devices, in order and as often as they are named.
    package let tokens: [String]

    /// Reads a body; members that the API does not know are ignored.
    ///
    /// - Throws: `INVALID_ARGUMENT` with the reason.
    package init(parsing body: ByteBuffer) throws(Refusal) {
        let root: JSONValue
        do {
            root = try JSONDocument(parsing: body).root
        } catch {
            throw Refusal(.malformedJSON, "\(error.reason) at position \(error.offset)")
        }
        guard root.members != nil else { throw Refusal(.malformedJSON, "The body must be an object") }
        guard let to = root["to"]?.string, TopicName.hasLegacyPrefix(to),
            let topic = TopicName(String(Substring(to.utf8.dropFirst(TopicName.legacyPrefix.utf8.count))))
        else { throw Refusal(.invalidField, "to must be /topics/ and a topic's name") }
        guard PercentEncoding.isAddressable(topic.text) else {
            throw Refusal(.invalidField, "to must not name a topic of dots alone")
        }
        guard let elements = root["registration_tokens"]?.elements,
            (1...InstanceIDRequest.maxTokens).contains(elements.count)
        else {
            throw Refusal(
                .invalidField,
                "registration_tokens must be an array of 1 to \(InstanceIDRequest.maxTokens) strings"
            )
        }
        var tokens: [String] = []
        tokens.reserveCapacity(elements.count)
        for element in elements {
            guard let token = element.string else {
                throw Refusal(.invalidField, "registration_tokens must hold strings alone")
            }
            tokens.append(token)
        }
        self.topic = topic
        self.tokens = tokens
    }
}
