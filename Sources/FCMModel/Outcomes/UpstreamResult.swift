package import NIOCore
import StrictJSON

/// An upstream's answer as it came off the wire, by either protocol.
package struct UpstreamResponse: Sendable, Hashable {
    package var status: Int
    package var retryAfter: String?
    /// The value of `Content-Type`; of interest only where the answer is passed through.
    package var contentType: String?
    package var body: ByteBuffer

    package init(status: Int, retryAfter: String?, contentType: String? = nil, body: ByteBuffer) {
        self.status = status
        self.retryAfter = retryAfter
        self.contentType = contentType
        self.body = body
    }

    /// The seconds that `Retry-After` asks to wait; a date counts from now, in seconds since 1970.
    func delay(now: Int) -> Int? { self.retryAfter.flatMap { RetryAfter.seconds($0, now: now) } }

    /// The body's root; `nil` where it is no JSON within the limits.
    func json(_ limits: JSONLimits = JSONLimits()) -> JSONValue? {
        (try? JSONDocument(parsing: self.body, limits: limits))?.root
    }

    /// The status as results name it; nearly all have the same.
    var statusText: String { self.status == 200 ? "200" : String(self.status) }
}

/// Bounds of what an upstream's answer may hold; an answer beyond them is not understood (`upstream_protocol`).
///
/// FCM itself stays far below them: 20 members in a group, message ids of 40 bytes, tokens of 200. Counts are added up,
/// ids and tokens are stored in the audit, in the list of retired tokens and by callers: a hostile or broken server
/// must be able to overflow, fill or mislead none of these.
package enum AnswerBounds {
    /// Members of a device group that an answer may count or name as reached, and as failed.
    package static let maxMembers = 1_000
    /// Bytes of a message id, and of a text about a device, such as its platform.
    static let maxLabelBytes = 512
    private static let maxTextLength = 200

    package static func isMessageID(_ text: String) -> Bool {
        text.utf8.count <= Self.maxLabelBytes && Self.isVisible(text)
    }

    /// Whether a text can be a registration token, a device group's key, or an access token.
    ///
    /// A topic's address is none: a caller who stores it as a token would send to everybody.
    package static func isToken(_ text: String) -> Bool {
        RegistrationToken.isPlausible(text) && Self.isVisible(text)
    }

    static func isLabel(_ text: String?) -> Bool {
        text.map { $0.utf8.count <= Self.maxLabelBytes } ?? true
    }

    /// The beginning of a refusal's text, for people.
    ///
    /// Counted in Unicode scalars: a single `Character` can be as long as the whole answer.
    package static func beginning(of text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maxTextLength)))
    }

    private static func isVisible(_ text: String) -> Bool {
        let bytes = text.utf8.span
        for index in bytes.indices where !(0x21...0x7E).contains(bytes[index]) { return false }
        return !bytes.isEmpty
    }
}

/// The result of one upstream call.
package struct UpstreamResult: Sendable, Hashable {
    /// The outcomes, or why there are none.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each recipient, in the request's order; a topic or a condition counts as one recipient.
        case recipients([RecipientOutcome])
        case group(GroupOutcome)
        /// The call failed as a whole, for every recipient alike.
        case failed(OutcomeCode)
    }

    package var answer: Answer
    /// Seconds to wait before a retry, where the upstream named them and something can be retried.
    package var retryAfter: Int?
    /// The HTTP status or the upstream's error name, bounded and free of payload.
    package var upstreamCode: String
    /// The legacy protocol's name for why the call failed as a whole, where it says more than the code: `InvalidTtl` is
    /// an invalid field among others.
    package private(set) var legacyName: LegacyErrorName?
    package var passThrough: PassThrough?

    package init(
        answer: Answer,
        retryAfter: Int? = nil,
        upstreamCode: String,
        legacyName: LegacyErrorName? = nil,
        passThrough: PassThrough? = nil
    ) {
        self.answer = answer
        self.retryAfter = retryAfter
        self.upstreamCode = upstreamCode
        self.passThrough = passThrough
        if let legacyName, case .failed(let code) = answer, code.legacyErrorName != legacyName.current {
            self.legacyName = legacyName.current
        }
    }
}

/// A v1 upstream's answer that a caller of the v1 facade gets as it came (V-FACADE).
///
/// Indirect, so that results without one, nearly all, carry a pointer and no more.
package indirect enum PassThrough: Sendable, Hashable {
    case answer(Reply)

    package var reply: Reply {
        switch self {
        case .answer(let reply): reply
        }
    }
}

/// The result of a message to a device group.
///
/// Counts are kept within 0 and ``AnswerBounds/maxMembers``, so that they can be added up.
package struct GroupOutcome: Sendable, Hashable {
    package let success: Int
    package let failure: Int
    package var failedTokens: [String]
    /// FCM's own id of the message, where it named one beside or in place of counts.
    package var messageID: String?

    package var isRetryable: Bool { self.failure > 0 }

    package init(success: Int, failure: Int, failedTokens: [String], messageID: String? = nil) {
        self.success = min(max(0, success), AnswerBounds.maxMembers)
        self.failure = min(max(0, failure), AnswerBounds.maxMembers)
        self.failedTokens = failedTokens
        self.messageID = messageID
    }
}
