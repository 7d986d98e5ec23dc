/// Decides when an access token is renewed, and what callers use meanwhile.
///
/// Pure: the caller supplies the time and the chance. At most one exchange is in flight; until it ends, or the current
/// token expires, callers use that token.
///
///     issued           70–80% of its life            end of its life
///       |------ use ---------|------ use, renew -----------|--- wait for the exchange
///
/// Example: a token of 3,600 s is renewed 2,520 to 2,880 s after its request was sent.
struct TokenState<Token: AnyObject & Sendable, Instant: InstantProtocol> where Instant.Duration == Duration {
    /// The next step of a caller without a current token.
    enum Step {
        case use(Token)
        case exchange
        case wait
        /// Gives up, because the last exchange failed a moment ago.
        case refuse(TokenFailure)
    }

    private struct Grant {
        let token: Token
        let issuedAt: Instant
        let renewAt: Instant
        let expiresAt: Instant
        /// True if it replaced a token that FCM had refused.
        let isReplacement: Bool
    }

    /// If a replacement is refused this soon, age is not the cause and another token would not help.
    private static var replacementTrial: Duration { .seconds(5) }
    private static var longestPause: Duration { .seconds(60) }

    private var grant: Grant?
    /// The last failure, and until when it answers callers without a new exchange.
    private var setback: (failure: TokenFailure, until: Instant)?
    private var failures = 0
    private var replaces = false
    private(set) var isExchanging = false

    /// Returns the current token, and true if the caller must begin an exchange; `nil` without a token.
    mutating func current(at now: Instant) -> (token: Token, renews: Bool)? {
        guard let grant = self.valid(at: now) else { return nil }
        guard now >= grant.renewAt, !self.isExchanging, self.standingFailure(at: now) == nil else {
            return (grant.token, false)
        }
        self.isExchanging = true
        return (grant.token, true)
    }

    mutating func next(at now: Instant) -> Step {
        if let grant = self.valid(at: now) { return .use(grant.token) }
        if self.isExchanging { return .wait }
        if let failure = self.standingFailure(at: now) { return .refuse(failure) }
        self.isExchanging = true
        return .exchange
    }

    /// The last exchange's result, for the callers that waited for it.
    func settled(at now: Instant) -> Result<Token, TokenFailure> {
        if let grant = self.valid(at: now) { return .success(grant.token) }
        return .failure(self.setback?.failure ?? .timedOut)
    }

    /// Stores a token requested at `start`; the chance, 0 to 1, spreads the renewals.
    mutating func succeeded(_ token: Token, lifetime: Duration, since start: Instant, chance: Double) {
        self.grant = Grant(
            token: token,
            issuedAt: start,
            renewAt: start.advanced(by: lifetime * (0.8 - 0.1 * chance)),
            expiresAt: start.advanced(by: lifetime),
            isReplacement: self.replaces
        )
        self.setback = nil
        self.failures = 0
        self.replaces = false
        self.isExchanging = false
    }

    /// Notes that an exchange failed; until the pause ends, the failure answers all callers.
    ///
    /// The pause doubles with each failure in a row, from one second to a minute; the chance, 0 to 1, takes off up to
    /// half. A longer `Retry-After` counts, up to a minute. Example: the third failure stands for 2 to 4 seconds.
    mutating func failed(_ failure: TokenFailure, at now: Instant, chance: Double) {
        let pause = min(Duration.seconds(1 << min(self.failures, 6)), Self.longestPause) * (1 - 0.5 * chance)
        let demanded = min(Duration.seconds(max(0, failure.retryAfter ?? 0)), Self.longestPause)
        self.failures += 1
        self.setback = (failure, now.advanced(by: max(pause, demanded)))
        self.isExchanging = false
    }

    /// Forgets exactly the token that FCM refused; returns true if a retry with another is worthwhile.
    mutating func refused(_ token: Token, at now: Instant) -> Bool {
        // Another token has replaced it, or is about to.
        guard let grant = self.grant, grant.token === token else { return true }
        if grant.isReplacement, now < grant.issuedAt.advanced(by: Self.replacementTrial) { return false }
        self.grant = nil
        self.replaces = true
        return true
    }

    private func valid(at now: Instant) -> Grant? {
        guard let grant = self.grant, now < grant.expiresAt else { return nil }
        return grant
    }

    private func standingFailure(at now: Instant) -> TokenFailure? {
        guard let setback = self.setback, now < setback.until else { return nil }
        return setback.failure
    }
}
