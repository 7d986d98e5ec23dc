package import NIOCore

/// A change of a device's subscription to a topic.
package enum SubscriptionChange: String, Sendable, Hashable, CaseIterable {
    case subscribe, unsubscribe
}

/// The outcome of a change of one device's subscription.
package enum SubscriptionOutcome: Sendable, Hashable {
    /// The subscription is as requested, regardless of its earlier state.
    case done
    case rejected(Rejection)

    package static func rejected(_ code: OutcomeCode) -> SubscriptionOutcome {
        .rejected(Rejection(code: code))
    }
}

/// One topic that a device is subscribed to.
package struct TopicSubscription: Sendable, Hashable {
    package var topic: String
    /// FCM's start of the subscription: a date from the Instance ID API, a time from HTTP v1.
    package var since: String?

    package init(topic: String, since: String? = nil) {
        self.topic = topic
        self.since = since
    }

    /// True if the subscription's texts are within bounds. A topic's name has the same bounds as a token.
    var isWithinBounds: Bool { AnswerBounds.isToken(self.topic) && AnswerBounds.isLabel(self.since) }
}

/// FCM's record of one device.
package struct RegistrationInfo: Sendable, Hashable {
    /// The app's package or bundle. HTTP v1 reports only the subscriptions. The Instance ID API reports all members.
    package var application: String?
    package var applicationVersion: String?
    /// The sender id with which the device registered.
    package var authorizedEntity: String?
    /// `ANDROID`, `IOS` or `CHROME`.
    package var platform: String?
    /// The subscribed topics, in the order of their names.
    package var subscriptions: [TopicSubscription]

    package init(
        application: String? = nil,
        applicationVersion: String? = nil,
        authorizedEntity: String? = nil,
        platform: String? = nil,
        subscriptions: [TopicSubscription] = []
    ) {
        self.application = application
        self.applicationVersion = applicationVersion
        self.authorizedEntity = authorizedEntity
        self.platform = platform
        self.subscriptions = subscriptions.sorted { $0.topic.utf8.lexicographicallyPrecedes($1.topic.utf8) }
    }
}

/// A request about subscriptions, without its server and credential.
package struct TopicRequest: Sendable, Hashable {
    /// The methods in use.
    package enum Method: Sendable, Hashable {
        case get, post, delete
    }

    package let method: Method
    /// Path and query.
    package let path: String
    /// The path's template. Logs and traces contain the template, because they must not contain the device.
    package let template: String
    package let body: ByteBuffer
    /// The maximum size of an answer, in bytes. The default fits all subscriptions that a device may have.
    package let maxAnswerBytes: Int

    init(
        _ method: Method,
        _ path: String,
        of template: String,
        body: ByteBuffer = ByteBuffer(),
        maxAnswerBytes: Int = 1024 * 1024
    ) {
        self.method = method
        self.path = path
        self.template = template
        self.body = body
        self.maxAnswerBytes = maxAnswerBytes
    }
}

/// The meaning of an answer to a call about subscriptions, or of its absence.
package struct TopicReading: Sendable, Hashable {
    /// The answer's meaning for the caller.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each device of the call, in the call's order.
        case changed([SubscriptionOutcome])
        /// FCM's record of the device. `nextPage` is the token of the next page, if there is one.
        case registration(RegistrationInfo, nextPage: String?)
        case rejected(Rejection)
    }

    /// The answer's meaning for the client of FCM.
    package enum Signal: Sendable, Hashable {
        case none
        /// FCM refused our access token. A fresh token is worth one retry (V-TOKEN).
        case tokenRefused
        /// The tenant's credential or quota is the cause. FCM would refuse every further call.
        case holdsForAll
        /// The server has nothing at this path. It does not serve the API, or not for this project (V-TOPICS).
        case apiMissing
    }

    package var answer: Answer
    package var signal: Signal
    package var upstreamCode: String

    package init(_ answer: Answer, signal: Signal = .none, upstreamCode: String) {
        self.answer = answer
        self.signal = signal
        self.upstreamCode = upstreamCode
    }

    /// Creates the reading of a call that was refused as a whole, by FCM or in transit.
    package init(rejected code: OutcomeCode, retryAfter: Int? = nil, signal: Signal = .none, upstreamCode: String) {
        let isQuota = code == .tenantRateExceeded
        self.init(
            .rejected(Rejection(code: code, retryAfter: retryAfter, limitedBy: isQuota ? .fcm : nil)),
            signal: signal,
            upstreamCode: upstreamCode
        )
    }

    /// Creates the reading of a call that FCM refused as a whole. A delay is reported only if waiting helps. A quota
    /// without a delay gets one minute.
    init(rejected code: OutcomeCode, delay: Int?, signal: Signal, upstreamCode: String) {
        let delay = code == .tenantRateExceeded ? delay ?? RetryAfter.afterTooManyRequests : delay
        self.init(
            rejected: code,
            retryAfter: code.isRetryable ? delay : nil,
            signal: signal,
            upstreamCode: upstreamCode
        )
    }
}
