/// What became of one recipient of a message.
package enum RecipientOutcome: Sendable, Hashable {
    case accepted(Acceptance)
    case rejected(Rejection)

    /// A rejection that carries nothing but its code.
    package static func rejected(_ code: OutcomeCode) -> RecipientOutcome {
        .rejected(Rejection(code: code))
    }
}

/// FCM took the message for one recipient.
package struct Acceptance: Sendable, Hashable {
    /// FCM's own id of the message, as text.
    package var messageID: String
    /// The token that replaces the one used, where FCM reported one.
    package var replacementToken: String?

    /// An accepted message.
    package init(messageID: String, replacementToken: String? = nil) {
        self.messageID = messageID
        self.replacementToken = replacementToken
    }
}

/// The message was not taken for one recipient.
package struct Rejection: Sendable, Hashable {
    /// Who exhausted whose quota.
    package enum LimitSource: String, Sendable, Hashable {
        case gateway
        case fcm
    }

    /// The reason.
    package var code: OutcomeCode
    /// Seconds to wait before a repeat, where somebody named them.
    package var retryAfter: Int?
    /// Whose limit was hit, for the rate codes.
    package var limitedBy: LimitSource?

    /// A refused message.
    package init(code: OutcomeCode, retryAfter: Int? = nil, limitedBy: LimitSource? = nil) {
        self.code = code
        self.retryAfter = retryAfter
        self.limitedBy = limitedBy
    }
}
