package import FCMModel

/// Keeps devices' subscriptions at FCM.
package protocol TopicUpstream: Sendable {
    /// Changes the subscriptions of some devices to one topic and says what became of each.
    ///
    /// Trouble on the way is a result too.
    func change(_ call: SubscriptionCall) async -> SubscriptionResult

    /// Tells what is known of a device.
    func look(up call: RegistrationCall) async -> RegistrationResult
}

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

    /// A call.
    package init(
        profile: TenantProfile,
        change: SubscriptionChange,
        topic: TopicName,
        tokens: [String],
        deadline: ContinuousClock.Instant
    ) {
        self.profile = profile
        self.change = change
        self.topic = topic
        self.tokens = tokens
        self.deadline = deadline
    }
}

/// What became of the devices of a ``SubscriptionCall``.
package struct SubscriptionResult: Sendable, Hashable {
    /// One outcome for each device, in the call's order.
    package var outcomes: [SubscriptionOutcome]
    /// What FCM itself said, bounded and free of tokens: an HTTP status or an error's name.
    package var upstreamCode: String

    /// A result.
    package init(_ outcomes: [SubscriptionOutcome], upstreamCode: String) {
        self.outcomes = outcomes
        self.upstreamCode = upstreamCode
    }

    /// The same rejection for every device of a call.
    package init(_ rejection: Rejection, for call: SubscriptionCall, upstreamCode: String) {
        self.init(Array(repeating: .rejected(rejection), count: call.tokens.count), upstreamCode: upstreamCode)
    }
}

/// A device to be looked up.
package struct RegistrationCall: Sendable {
    /// What is to be known of it.
    package enum Part: Sendable, Hashable {
        /// Its subscriptions.
        case subscriptions
        /// Its app and platform as well, which only the Instance ID API tells.
        case everything
    }

    /// Whose it is.
    package let profile: TenantProfile
    /// The device.
    package let token: String
    /// What is to be known of it.
    package let part: Part
    /// When waiting for answers ends.
    package let deadline: ContinuousClock.Instant

    /// A call.
    package init(profile: TenantProfile, token: String, part: Part, deadline: ContinuousClock.Instant) {
        self.profile = profile
        self.token = token
        self.part = part
        self.deadline = deadline
    }
}

/// What a ``RegistrationCall`` brought.
package struct RegistrationResult: Sendable, Hashable {
    /// The answer.
    package enum Answer: Sendable, Hashable {
        /// What is known of the device.
        case found(RegistrationInfo)
        /// Why that is nothing.
        case rejected(Rejection)
    }

    /// The answer.
    package var answer: Answer
    /// What FCM itself said, bounded and free of tokens.
    package var upstreamCode: String

    /// A result.
    package init(_ answer: Answer, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }
}
