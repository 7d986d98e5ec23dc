import FCMModel
import NIOCore
import StrictJSON

/// A token endpoint's answer as it came off the wire.
struct TokenReply {
    /// Seconds of difference that the service and the assertion's life put up with.
    static let toleratedSkew = 60

    /// Errors of RFC 6749, 5.2, by which the failure is called; any other text is not from a bounded set.
    private static let knownErrors: Set<String> = [
        "invalid_grant", "invalid_scope", "invalid_client", "invalid_request", "unauthorized_client",
        "unsupported_grant_type", "access_denied",
    ]
    /// What a token without a stated life is trusted for.
    private static let assumedLifeSeconds = 300
    /// A day, twice what Google grants at most: a longer life is not believed.
    private static let longestLifeSeconds = 86_400

    let status: Int
    let retryAfter: String?
    /// The value of `Date`.
    let date: String?
    let body: ByteBuffer

    /// What the answer means.
    ///
    /// - Parameter now: seconds since 1970 by our clock.
    /// - Returns: the token, or why there is none.
    func read(now: Int) -> Result<IssuedToken, TokenFailure> {
        let root = (try? JSONDocument(parsing: self.body))?.root
        guard (200...299).contains(self.status) else {
            return .failure(self.failure(root, now: now))
        }
        // What stands in a header's field is visible ASCII (RFC 6750, 2.1).
        guard let text = root?["access_token"]?.string, AnswerBounds.isToken(text) else {
            return .failure(TokenFailure(.unreachable, "token_unreadable"))
        }
        let life = root?["expires_in"]?.number?.integer ?? Self.assumedLifeSeconds
        guard life > 0 else { return .failure(TokenFailure(.unreachable, "token_unreadable")) }
        return .success(IssuedToken(text: text, lifetimeSeconds: min(life, Self.longestLifeSeconds)))
    }

    private func failure(_ root: JSONValue?, now: Int) -> TokenFailure {
        let delay = self.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch self.status {
        case 408, 429, 500...599:
            return TokenFailure(.unreachable, "token_http_\(self.status)", retryAfter: delay)
        default:
            let error = root?["error"]?.string ?? ""
            return TokenFailure(
                .refused,
                Self.knownErrors.contains(error) ? error : "token_http_\(self.status)",
                detail: root?["error_description"]?.string,
                clockOffset: self.clockOffset(now: now)
            )
        }
    }

    private func clockOffset(now: Int) -> Int? {
        guard let date = self.date, let theirs = HTTPDate.seconds(date), theirs > 1_000_000_000 else { return nil }
        return now - theirs
    }
}
