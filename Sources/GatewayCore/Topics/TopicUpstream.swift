package import FCMModel

/// FCM's side of subscriptions.
package protocol TopicUpstream: Sendable {
    /// Changes the subscriptions of some devices, each named once, and says what became of each; trouble on the way is
    /// a result too.
    func change(_ command: SubscriptionCommand) async -> SubscriptionResult

    /// Tells what is known of a device.
    func lookUp(_ command: RegistrationCommand) async -> RegistrationResult
}

/// A checked request to change some devices' subscriptions to one topic.
package struct SubscriptionCommand: Sendable {
    package let principal: Principal
    package let change: SubscriptionChange
    package let topic: TopicName
    /// 1 to 1,000 devices, in order and as often as they were named; on the way to FCM each once, and only those that
    /// limits let through.
    package internal(set) var tokens: [String]
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

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

    /// The same change of some of its devices.
    func of(_ tokens: [String]) -> SubscriptionCommand {
        var command = self
        command.tokens = tokens
        return command
    }
}

/// What became of the devices of a ``SubscriptionCommand``.
package struct SubscriptionResult: Sendable, Hashable {
    /// One outcome for each device, in the command's order.
    package var outcomes: [SubscriptionOutcome]
    /// What FCM itself said, bounded and free of tokens: an HTTP status or an error's name.
    package var upstreamCode: String

    package init(_ outcomes: [SubscriptionOutcome], upstreamCode: String) {
        self.outcomes = outcomes
        self.upstreamCode = upstreamCode
    }
}

/// A checked request to look a device up.
package struct RegistrationCommand: Sendable {
    /// What is to be known of a device.
    package enum Part: Sendable, Hashable {
        case subscriptions
        /// Its app and platform as well, which only the Instance ID API tells.
        case everything
    }

    package let principal: Principal
    package let token: String
    package let part: Part
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

    package init(
        principal: Principal,
        token: String,
        part: Part,
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

/// What a ``RegistrationCommand`` brought.
package struct RegistrationResult: Sendable, Hashable {
    /// What is known of the device, or why that is nothing.
    package enum Answer: Sendable, Hashable {
        case found(RegistrationInfo)
        case rejected(Rejection)
    }

    package var answer: Answer
    /// What FCM itself said, bounded and free of tokens.
    package var upstreamCode: String

    package init(_ answer: Answer, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }
}
