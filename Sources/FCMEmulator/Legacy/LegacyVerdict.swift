/// What the checks said about one request to `/fcm/send`.
enum LegacyVerdict: Sendable, Equatable {
    /// Answered without looking at recipients.
    case refused(Answer, reason: String)
    /// To be settled with the recipients.
    case accepted(LegacyMessage, LegacyFormat)
}
