package import NIOCore

/// A change of a device's subscription to a topic.
package enum SubscriptionChange: String, Sendable, Hashable, CaseIterable {
    case subscribe, unsubscribe
}

/// The outcome of a change of one device's subscription.
package enum SubscriptionOutcome: Sendable, Hashable {
    /// It is as was asked for, whether or not it was so before.
    case done
    case rejected(Rejection)

    package static func rejected(_ code: OutcomeCode) -> SubscriptionOutcome {
        .rejected(Rejection(code: code))
    }
}

/// One topic that a device is subscribed to.
package struct TopicSubscription: Sendable, Hashable {
    package var topic: String
    /// When the subscription began as FCM tells it: a date by the Instance ID API, a time by HTTP v1.
    package var since: String?

    package init(topic: String, since: String? = nil) {
        self.topic = topic
        self.since = since
    }

    /// Whether an upstream may name it: a topic's name is bounded like a token.
    var isWithinBounds: Bool { AnswerBounds.isToken(self.topic) && AnswerBounds.isLabel(self.since) }
}

/// FCM's record of one device.
package struct RegistrationInfo: Sendable, Hashable {
    /// The app's package or bundle; only the Instance ID API tells it, as all but the subscriptions.
    package var application: String?
    package var applicationVersion: String?
    /// The sender id that the device registered with.
    package var authorizedEntity: String?
    /// `ANDROID`, `IOS` or `CHROME`.
    package var platform: String?
    /// The topics that it is subscribed to, in the order of their names.
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

/// A request about subscriptions, but for its server and credential.
package struct TopicRequest: Sendable, Hashable {
    /// The methods in use.
    package enum Method: Sendable, Hashable {
        case get, post, delete
    }

    package let method: Method
    /// Path and query.
    package let path: String
    /// The template of the path, for logs and traces, which must not name the device.
    package let template: String
    package let body: ByteBuffer
    /// The longest answer, in bytes; the default lists all subscriptions that a device may have.
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

/// The meaning of an answer to a call about subscriptions, or of none.
package struct TopicReading: Sendable, Hashable {
    /// The answer's meaning for the caller.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each device of the call, in its order.
        case changed([SubscriptionOutcome])
        /// FCM's record of the device, and the token of the next page, if there is more.
        case registration(RegistrationInfo, nextPage: String?)
        case rejected(Rejection)
    }

    /// The answer's meaning for the client of FCM.
    package enum Signal: Sendable, Hashable {
        case none
        /// Our access token was refused: a fresh one is worth one retry (V-TOKEN).
        case tokenRefused
        /// The tenant's credential or quota: every further call would be refused.
        case holdsForAll
        /// The server knows nothing at this path: the API is not served there, or not to this project (V-TOPICS).
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

    /// A call that was refused as a whole, by FCM or on the way.
    package init(rejected code: OutcomeCode, retryAfter: Int? = nil, signal: Signal = .none, upstreamCode: String) {
        let isQuota = code == .tenantRateExceeded
        self.init(
            .rejected(Rejection(code: code, retryAfter: retryAfter, limitedBy: isQuota ? .fcm : nil)),
            signal: signal,
            upstreamCode: upstreamCode
        )
    }

    /// A call that FCM refused as a whole; its delay, or a minute for a quota, is told only where waiting helps.
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
