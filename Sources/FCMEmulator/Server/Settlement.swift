/// What an accepted message leads to, whichever protocol it came by.
struct Settlement: Sendable, Equatable {
    let answer: Answer

    /// Who receives it.
    let recipients: [Recipient]

    /// The topic it was sent to, if it was.
    let topic: String?

    /// The condition it was sent to, if it was, in canonical form.
    let condition: String?

    /// What the recipients receive.
    let content: DeliveredMessage

    /// Why recipients failed; nil when none did.
    let reason: String?

    /// What is allowed but would not come from a careful caller.
    let notes: [String]
}
