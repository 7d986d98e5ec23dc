/// What became of one recipient (T5).
enum RecipientResult: Equatable {
    /// Accepted; with the canonical token when the recipient has a newer one.
    case accepted(messageID: String, canonical: String?)
    /// Refused with an error of this name.
    case failed(String)
}
