package import NIOCore
import StrictJSON

/// An upstream's answer as received, in either protocol.
package struct UpstreamResponse: Sendable, Hashable {
    package var status: Int
    package var retryAfter: String?
    /// The value of `Content-Type`, used only if the answer is passed through.
    package var contentType: String?
    package var body: ByteBuffer

    package init(status: Int, retryAfter: String?, contentType: String? = nil, body: ByteBuffer) {
        self.status = status
        self.retryAfter = retryAfter
        self.contentType = contentType
        self.body = body
    }

    /// The delay, in seconds, from `Retry-After`. A date's delay is counted from `now`, in seconds since 1970.
    func delay(now: Int) -> Int? { self.retryAfter.flatMap { RetryAfter.seconds($0, now: now) } }

    /// The body's root. `nil` if the body is not JSON within the limits.
    func json(_ limits: JSONLimits = JSONLimits()) -> JSONValue? {
        (try? JSONDocument(parsing: self.body, limits: limits))?.root
    }

    /// The status as text. Nearly all statuses are 200, for which the text is constant.
    var statusText: String { self.status == 200 ? "200" : String(self.status) }
}

/// Bounds for an upstream's answer. An answer beyond them is `upstream_protocol`.
///
/// FCM's answers are far smaller: 20 members in a group, message ids of 40 bytes, and tokens of 200 bytes.
///
/// The gateway sums the counts. The audit, the list of retired tokens, and callers store the ids and tokens. A hostile
/// or broken server must not be able to overflow the sums, or to fill or mislead the stores.
package enum AnswerBounds {
    /// The maximum number of reached members, and of failed members, that an answer for a device group may report.
    package static let maxMembers = 1_000
    /// The maximum number of bytes of a message id, or of a text about a device, such as its platform.
    static let maxLabelBytes = 512
    private static let maxTextLength = 200

    package static func isMessageID(_ text: String) -> Bool {
        text.utf8.count <= Self.maxLabelBytes && Self.isVisible(text)
    }

    /// True if a text can be a registration token or a device group's key.
    ///
    /// A topic's address is not a token. A caller that stored the address as a token would send to all subscribers.
    package static func isToken(_ text: String) -> Bool {
        RegistrationToken.isPlausible(text) && Self.isVisible(text)
    }

    static func isLabel(_ text: String?) -> Bool {
        text.map { $0.utf8.count <= Self.maxLabelBytes } ?? true
    }

    /// Returns the beginning of a refusal's text, for people.
    ///
    /// The limit counts Unicode scalars, because a single `Character` can be as long as the whole answer.
    package static func beginning(of text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maxTextLength)))
    }

    private static func isVisible(_ text: String) -> Bool {
        let bytes = text.utf8.span
        for index in bytes.indices where !(0x21...0x7E).contains(bytes[index]) { return false }
        return !bytes.isEmpty
    }
}

/// The result of a send. The response and the audit record are written from this value.
///
/// The reader of FCM's protocol creates the result from FCM's answer. The gateway's own refusals have the same form.
package struct SendResult: Sendable, Hashable {
    /// A v1 upstream's answer that a v1 caller receives unchanged (V-FACADE).
    ///
    /// The enum is indirect, so that a result without an answer stays small.
    package indirect enum PassThrough: Sendable, Hashable {
        case answer(Reply)

        package var reply: Reply {
            switch self {
            case .answer(let reply): reply
            }
        }
    }

    /// The outcomes, or the one cause for their absence.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each recipient, in the request's order. A topic or a condition counts as one recipient.
        case recipients([RecipientOutcome])
        case group(GroupOutcome)
        /// One cause for all recipients: nothing was tried, or the call failed as a whole.
        ///
        /// The case is indirect, so that the results of nearly all sends stay small.
        indirect case refused(Refusal)
    }

    package var answer: Answer
    /// The HTTP status or the upstream's error name. The set of values is bounded, and no value contains payload. `nil`
    /// if FCM was not called.
    package var upstreamCode: String?
    package var passThrough: PassThrough?

    package init(_ answer: Answer, upstreamCode: String? = nil, passThrough: PassThrough? = nil) {
        self.answer = answer
        self.upstreamCode = upstreamCode
        self.passThrough = passThrough
    }

    /// Creates the result from FCM's outcomes. `retryAfter` applies to each retryable recipient without a delay of its
    /// own.
    package init(
        _ outcomes: [RecipientOutcome],
        retryAfter: Int? = nil,
        upstreamCode: String,
        passThrough: PassThrough? = nil
    ) {
        let isComplete = !outcomes.contains(where: \.isRetryable)
        self.init(
            .recipients(isComplete ? outcomes : outcomes.map { $0.retryable(after: retryAfter) }),
            upstreamCode: upstreamCode,
            passThrough: passThrough
        )
    }

    /// Creates the result of a call that failed as a whole. `legacyName` is the cause's name if that name says more
    /// than the code.
    package init(
        refused code: OutcomeCode,
        retryAfter: Int? = nil,
        upstreamCode: String,
        legacyName: LegacyErrorName? = nil
    ) {
        let rejection = Rejection(
            code: code,
            retryAfter: code.isRetryable ? retryAfter : nil,
            limitedBy: code.isRateLimit ? .fcm : nil,
            legacyName: legacyName
        )
        self.init(.refused(Refusal(rejection)), upstreamCode: upstreamCode)
    }
}

extension SendResult {
    /// The cause for all recipients, if there is one.
    package var refusal: Refusal? { if case .refused(let refusal) = self.answer { refusal } else { nil } }

    /// The code of the first refusal; `nil` if every recipient was accepted.
    package var code: OutcomeCode? {
        switch self.answer {
        case .refused(let refusal): refusal.code
        case .recipients(let outcomes): outcomes.lazy.compactMap(\.code).first
        case .group: nil
        }
    }

    /// The longest delay, in seconds, among the retryable refusals.
    package var retryAfter: Int? {
        switch self.answer {
        case .refused(let refusal): refusal.retryAfter
        case .recipients(let outcomes): outcomes.longestDelay
        case .group(let group): group.retryAfter
        }
    }

    /// The result of a message to a device group, in counts. An upstream may answer with a message id, as for a single
    /// device. The response needs counts, because its shape follows the target.
    package var inCounts: SendResult {
        guard case .recipients(let outcomes) = self.answer, outcomes.count == 1,
            case .accepted(let acceptance) = outcomes[0]
        else { return self }
        var result = self
        result.answer = .group(GroupOutcome(success: 1, failure: 0, failedTokens: [], messageID: acceptance.messageID))
        return result
    }

    /// Returns the result with the number of members that the gateway knows, if the upstream reports none (TB-GROUP).
    package func counting(_ members: Int) -> SendResult {
        guard case .group(let counts) = self.answer, counts.failure == 0 else { return self }
        var result = self
        result.answer = .group(
            GroupOutcome(success: max(1, members), failure: 0, failedTokens: [], messageID: counts.messageID)
        )
        return result
    }

    /// Returns `count` outcomes, one for each recipient.
    package func outcomes(count: Int) -> [RecipientOutcome] {
        switch self.answer {
        case .recipients(let outcomes): outcomes
        case .refused(let refusal): Array(repeating: .rejected(refusal.rejection), count: count)
        case .group: Array(repeating: .rejected(.upstreamProtocol), count: count)
        }
    }
}

extension RecipientOutcome {
    fileprivate func retryable(after delay: Int?) -> RecipientOutcome {
        guard case .rejected(var rejection) = self, rejection.code.isRetryable else { return self }
        rejection.retryAfter = rejection.retryAfter ?? delay
        if rejection.code.isRateLimit { rejection.limitedBy = .fcm }
        return .rejected(rejection)
    }
}

extension OutcomeCode {
    fileprivate var isRateLimit: Bool {
        self == .deviceRateExceeded || self == .topicRateExceeded || self == .tenantRateExceeded
    }
}

/// The result of a message to a device group.
///
/// Counts are between 0 and ``AnswerBounds/maxMembers``, so that their sums can't overflow.
package struct GroupOutcome: Sendable, Hashable {
    package let success: Int
    package let failure: Int
    package var failedTokens: [String]
    /// FCM's id of the message. `nil` if FCM named none.
    package var messageID: String?
    /// The seconds before a retry, if FCM named a delay and a member failed.
    package var retryAfter: Int?

    package var isRetryable: Bool { self.failure > 0 }

    package init(
        success: Int,
        failure: Int,
        failedTokens: [String],
        messageID: String? = nil,
        retryAfter: Int? = nil
    ) {
        self.success = min(max(0, success), AnswerBounds.maxMembers)
        self.failure = min(max(0, failure), AnswerBounds.maxMembers)
        self.failedTokens = failedTokens
        self.messageID = messageID
        self.retryAfter = self.failure > 0 ? retryAfter : nil
    }
}
