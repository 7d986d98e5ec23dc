/// One topic that a device is subscribed to.
package struct TopicSubscription: Sendable, Hashable {
    /// The topic's name, without `/topics/`.
    package var topic: String
    /// When the subscription began as FCM tells it: a date by the Instance ID API, a time by HTTP v1.
    package var since: String?

    /// A subscription.
    package init(topic: String, since: String? = nil) {
        self.topic = topic
        self.since = since
    }

    /// Whether an upstream may name it: a topic's name is bounded like a token.
    var isWithinBounds: Bool { AnswerBounds.isToken(self.topic) && AnswerBounds.isLabel(self.since) }
}
