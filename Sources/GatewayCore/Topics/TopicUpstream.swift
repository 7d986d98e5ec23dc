package import FCMModel

/// Keeps devices' subscriptions at FCM.
package protocol TopicUpstream: Sendable {
    /// Changes the subscriptions of some devices to one topic, each named once; trouble on the way is a result too.
    func change(_ call: SubscriptionCall) async -> SubscriptionResult

    func lookUp(_ call: RegistrationCall) async -> RegistrationResult
}

/// A checked request to change some devices' subscriptions to one topic.
package struct SubscriptionCall: Sendable {
    package let caller: Caller
    package let change: SubscriptionChange
    package let topic: TopicName
    /// 1 to 1,000 devices; from callers in order and as often as they were named, to the upstream each once.
    package let tokens: [String]

    package init(_ change: SubscriptionChange, of tokens: [String], to topic: TopicName, by caller: Caller) {
        self.caller = caller
        self.change = change
        self.topic = topic
        self.tokens = tokens
    }

    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: ContinuousClock.Instant { self.caller.deadline }

    func addressing(_ tokens: [String]) -> SubscriptionCall {
        SubscriptionCall(self.change, of: tokens, to: self.topic, by: self.caller)
    }
}

/// What became of the devices of a ``SubscriptionCall``.
package struct SubscriptionResult: Sendable, Hashable {
    package var outcomes: [SubscriptionOutcome]
    /// What FCM itself said, bounded and free of tokens: an HTTP status or an error's name.
    package var upstreamCode: String

    package init(_ outcomes: [SubscriptionOutcome], upstreamCode: String) {
        self.outcomes = outcomes
        self.upstreamCode = upstreamCode
    }
}

/// A checked request to look a device up.
package struct RegistrationCall: Sendable {
    /// What is to be known of the device.
    package enum Part: Sendable, Hashable {
        case subscriptions
        /// Its app and platform as well, which only the Instance ID API tells.
        case everything
    }

    package let caller: Caller
    package let token: String
    package let part: Part

    package init(_ part: Part, of token: String, by caller: Caller) {
        self.caller = caller
        self.token = token
        self.part = part
    }

    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: ContinuousClock.Instant { self.caller.deadline }
}

/// What a ``RegistrationCall`` brought.
package struct RegistrationResult: Sendable, Hashable {
    /// What is known of the device, or why nothing is.
    package enum Answer: Sendable, Hashable {
        case found(RegistrationInfo)
        case rejected(Rejection)
    }

    package var answer: Answer
    /// As in ``SubscriptionResult``.
    package var upstreamCode: String

    package init(_ answer: Answer, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }
}
