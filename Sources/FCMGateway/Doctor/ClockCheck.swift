import GatewayCore

/// Compares the machine's time with what others have recorded.
enum ClockCheck {
    /// A clock further off than this deserves attention.
    static let warningSeconds = 5
    /// A clock further off than this can't get access tokens.
    static let problemSeconds = 300

    private static let advice = "Let the machine's clock be set by NTP: timedatectl status, chronyc tracking"

    /// Compares with the newest audit record; nil where there is none.
    static func finding(newestRecord: Timestamp?, now: Timestamp) -> Finding? {
        guard let newestRecord else { return nil }
        let ahead = newestRecord.seconds - now.seconds
        guard ahead > Self.warningSeconds else {
            return .ok(.clock, "newest audit record", "lies \(max(0, -ahead)) s back")
        }
        return .warning(
            .clock,
            "newest audit record",
            "lies \(ahead) s in the future: the clock was set back, or was ahead then",
            Self.advice
        )
    }

    /// Compares with the time that a server told.
    ///
    /// - Parameters:
    ///   - server: Who told it.
    ///   - told: What it told, which has whole seconds.
    ///   - now: The machine's time when the answer was there.
    /// - Returns: What there is to say.
    static func finding(server: String, told: Timestamp, now: Timestamp) -> Finding {
        let offset = now.seconds - told.seconds
        let seen =
            offset == 0
            ? "agrees to the second" : "is \(abs(offset)) s \(offset > 0 ? "behind" : "ahead of") this clock"
        let subject = "time told by \(server)"
        if abs(offset) > Self.problemSeconds {
            return .problem(
                .clock,
                subject,
                seen,
                "Google refuses to give access tokens to a clock this far off. \(Self.advice)"
            )
        }
        return abs(offset) > Self.warningSeconds
            ? .warning(.clock, subject, seen, Self.advice) : .ok(.clock, subject, seen)
    }
}
