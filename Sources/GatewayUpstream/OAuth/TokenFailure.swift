package import FCMModel

/// Why there is no access token.
package struct TokenFailure: Error, Sendable, Hashable {
    /// Who must act.
    package enum Kind: Sendable, Hashable {
        /// The credential is not accepted: an operator.
        case refused
        /// The token endpoint can't be reached or is in trouble: nobody, a later attempt can succeed.
        case unreachable
    }

    /// Who must act.
    package let kind: Kind
    /// What happened, from a bounded set.
    package let code: String
    /// The token endpoint's own words, cut where they are long; for operators.
    package var detail: String?
    /// Seconds to wait, where the token endpoint named them.
    package var retryAfter: Int?
    /// How many seconds this machine's clock is ahead of the token endpoint's, where that told the time.
    package var clockOffset: Int?

    /// A failure.
    package init(
        _ kind: Kind,
        _ code: String,
        detail: String? = nil,
        retryAfter: Int? = nil,
        clockOffset: Int? = nil
    ) {
        self.kind = kind
        self.code = code
        self.detail = detail.map(AnswerBounds.beginning)
        self.retryAfter = retryAfter
        self.clockOffset = clockOffset
    }

    /// What callers are told.
    package var outcomeCode: OutcomeCode {
        switch self.kind {
        case .refused: .upstreamCredentials
        case .unreachable: .upstreamUnavailable
        }
    }

    /// The caller's time was up before the token endpoint's answer came.
    static let timedOut = TokenFailure(.unreachable, "token_timeout")
    /// The gateway no longer asks for tokens.
    static let shutDown = TokenFailure(.unreachable, "shutDown")
    /// The account's token endpoint is none that may be asked.
    static let hostRefused = TokenFailure(.refused, "token_host_refused")
    /// The private key is none that can sign.
    static let keyUnusable = TokenFailure(.refused, "key_unusable")
}
