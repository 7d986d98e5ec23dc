/// Decides when an access token is asked for, and what is used meanwhile.
///
/// Pure: the caller supplies the time and the chance. One exchange is in flight at most; while it is, the current token
/// goes on being used until its own end.
struct TokenState<Token: AnyObject & Sendable, Instant: InstantProtocol> where Instant.Duration == Duration {
    /// What a caller without a current token does.
    enum Step {
        case use(Token)
        case exchange
        case wait
        /// Gives up: the last exchange failed a moment ago.
        case refuse(TokenFailure)
    }

    private struct Grant {
        let token: Token
        let issuedAt: Instant
        let renewAt: Instant
        let expiresAt: Instant
        /// Whether it took the place of one that was refused.
        let isReplacement: Bool
    }

    /// A replacement that is refused this soon is not refused for its age: another would not help.
    private static var replacementTrial: Duration { .seconds(5) }
    private static var longestPause: Duration { .seconds(60) }

    private var grant: Grant?
    /// The last failure, and until when it stands for an answer.
    private var setback: (failure: TokenFailure, until: Instant)?
    private var failures = 0
    private var replaces = false
    private(set) var isExchanging = false

    /// The current token and whether the caller is to begin an exchange; `nil` without one.
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

    /// What the last exchange came to, for those who waited for it.
    func settled(at now: Instant) -> Result<Token, TokenFailure> {
        if let grant = self.valid(at: now) { return .success(grant.token) }
        return .failure(self.setback?.failure ?? .timedOut)
    }

    /// Notes a token that was asked for at `start`; the chance, 0 to 1, spreads renewals over the last tenth before 80%
    /// of its life.
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

    /// Notes that none was issued; the failure stands for a while that grows from one second to a minute, of which the
    /// chance, 0 to 1, takes up to half away.
    mutating func failed(_ failure: TokenFailure, at now: Instant, chance: Double) {
        let pause = min(Duration.seconds(1 << min(self.failures, 6)), Self.longestPause) * (1 - 0.5 * chance)
        let demanded = min(Duration.seconds(max(0, failure.retryAfter ?? 0)), Self.longestPause)
        self.failures += 1
        self.setback = (failure, now.advanced(by: max(pause, demanded)))
        self.isExchanging = false
    }

    /// Forgets exactly the token that FCM refused; whether a retry with another is worth it.
    mutating func refused(_ token: Token, at now: Instant) -> Bool {
        // Another has taken its place already, or is about to.
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
