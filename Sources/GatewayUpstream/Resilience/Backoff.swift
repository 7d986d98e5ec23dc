/// When a call is repeated.
enum Backoff {
    /// Calls made for one message at most.
    static let maxAttempts = 3
    /// The bounds that a server's `Retry-After` is kept to, in seconds.
    private static let demanded = 10...3_600
    private static let first = Duration.seconds(1)

    /// How long to wait before a repeat.
    ///
    /// - Parameters:
    ///   - attempts: how many attempts there have been, from 1.
    ///   - reason: why there is to be another; what was not sent goes at once, by another connection.
    ///   - retryAfter: seconds that the server asked for, if it did.
    ///   - chance: 0 to 1; spreads callers that failed together over the whole wait.
    /// - Returns: the wait, perhaps none.
    static func wait(
        after attempts: Int,
        for reason: RepeatReason,
        retryAfter: Int?,
        chance: Double = .random(in: 0...1)
    ) -> Duration {
        guard reason == .trouble else { return .zero }
        let spread = Self.first * Double(1 << (attempts - 1)) * chance
        guard let retryAfter else { return spread }
        // On top, since all who failed together were told the same.
        return .seconds(min(max(retryAfter, Self.demanded.lowerBound), Self.demanded.upperBound)) + spread
    }
}
