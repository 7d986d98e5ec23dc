package import FCMModel

/// Some devices' subscriptions to be changed.
package struct SubscriptionCall: Sendable {
    /// Whose they are.
    package let profile: TenantProfile
    /// What becomes of them.
    package let change: SubscriptionChange
    /// The topic.
    package let topic: TopicName
    /// The devices, 1 to 1,000 and each once.
    package let tokens: [String]
    /// When waiting for answers ends.
    package let deadline: ContinuousClock.Instant
    /// The request behind it.
    package let origin: RequestOrigin

    /// A call.
    package init(
        profile: TenantProfile,
        change: SubscriptionChange,
        topic: TopicName,
        tokens: [String],
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) {
        self.origin = origin
        self.profile = profile
        self.change = change
        self.topic = topic
        self.tokens = tokens
        self.deadline = deadline
    }
}
