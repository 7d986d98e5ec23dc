package import FCMModel

/// A checked request to change some devices' subscriptions to one topic.
package struct SubscriptionCommand: Sendable {
    /// Who asks.
    package let principal: Principal
    /// What becomes of the subscriptions.
    package let change: SubscriptionChange
    /// The topic.
    package let topic: TopicName
    /// The devices, 1 to 1,000, in order and as often as they were named.
    package let tokens: [String]
    /// The request it came with.
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

    /// A command.
    package init(
        principal: Principal,
        change: SubscriptionChange,
        topic: TopicName,
        tokens: [String],
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.principal = principal
        self.change = change
        self.topic = topic
        self.tokens = tokens
        self.origin = origin
        self.deadline = deadline
    }
}

/// A checked request to look a device up.
package struct RegistrationCommand: Sendable {
    /// Who asks.
    package let principal: Principal
    /// The device.
    package let token: String
    /// What is to be known of it.
    package let part: RegistrationCall.Part
    /// The request it came with.
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

    /// A command.
    package init(
        principal: Principal,
        token: String,
        part: RegistrationCall.Part,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.principal = principal
        self.token = token
        self.part = part
        self.origin = origin
        self.deadline = deadline
    }
}
