/// What the checks said about one v1 send request.
enum V1Verdict: Sendable, Equatable {
    /// Answered without looking at recipients.
    case refused(Answer, reason: String)
    /// To be settled with the recipients.
    case accepted(V1Message)
}
