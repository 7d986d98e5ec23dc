/// What became of one recipient of a message.
package enum RecipientOutcome: Sendable, Hashable {
    case accepted(Acceptance)
    case rejected(Rejection)

    /// A rejection that carries nothing but its code.
    package static func rejected(_ code: OutcomeCode) -> RecipientOutcome {
        .rejected(Rejection(code: code))
    }

    /// Why the message was not taken; `nil` where it was.
    package var code: OutcomeCode? {
        switch self {
        case .accepted: nil
        case .rejected(let rejection): rejection.code
        }
    }

    /// Whether the same can be tried again.
    package var isRetryable: Bool { self.code?.isRetryable == true }
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
    /// The legacy protocol's name for the reason, where it says more than the code: `InvalidTtl` is an invalid field
    /// among others, `InvalidApnsCredential` a credential among others.
    package private(set) var legacyName: LegacyErrorName?

    /// A refused message.
    ///
    /// - Parameters:
    ///   - code: the reason.
    ///   - retryAfter: seconds to wait before a repeat.
    ///   - limitedBy: whose limit was hit.
    ///   - legacyName: what the legacy protocol calls the reason; kept only where the code alone would be called
    ///     something else.
    package init(
        code: OutcomeCode,
        retryAfter: Int? = nil,
        limitedBy: LimitSource? = nil,
        legacyName: LegacyErrorName? = nil
    ) {
        self.code = code
        self.retryAfter = retryAfter
        self.limitedBy = limitedBy
        let name = legacyName?.current
        self.legacyName = name == code.legacyErrorName ? nil : name
    }

    /// What the legacy protocol calls the reason.
    package var legacyErrorName: LegacyErrorName {
        self.legacyName ?? self.code.legacyErrorName
    }
}
