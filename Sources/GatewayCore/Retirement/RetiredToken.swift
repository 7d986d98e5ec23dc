/// What a retired token is: a registration token or an installation id.
package enum RetiredTokenKind: String, Sendable, Hashable, CaseIterable {
    case token
    case installation = "fid"
}

/// One entry of the feed of retired tokens.
package struct RetiredToken: Sendable, Hashable {
    /// Why a token should not be used any more.
    package enum Reason: String, Sendable, Hashable {
        /// FCM calls it unregistered.
        case unregistered
        /// FCM knows the device by another token.
        case replaced
    }

    /// What it is.
    package var kind: RetiredTokenKind
    /// The token itself.
    package var text: String
    /// Why it should not be used any more.
    package var reason: Reason
    /// When FCM first reported it.
    package var since: Timestamp
    /// The token that should be used instead, where FCM named one.
    package var replacement: String?

    /// An entry.
    package init(
        kind: RetiredTokenKind,
        text: String,
        reason: Reason,
        since: Timestamp,
        replacement: String? = nil
    ) {
        self.kind = kind
        self.text = text
        self.reason = reason
        self.since = since
        self.replacement = replacement
    }
}

/// Some entries of the feed of retired tokens.
package struct RetiredTokenFeed: Sendable, Hashable {
    /// The entries, in the order in which they came to be fed.
    package var tokens: [RetiredToken]
    /// Where the feed was read to; what is fed later comes after it.
    package var position: Int
    /// Whether there is more now.
    package var hasMore: Bool

    /// Some entries.
    package init(tokens: [RetiredToken], position: Int, hasMore: Bool) {
        self.tokens = tokens
        self.position = position
        self.hasMore = hasMore
    }
}
