/// A v1 message that passed every check.
struct V1Message: Sendable, Equatable {
    /// The project it is sent for, as in the request's path.
    let project: String
    let target: V1Target
    let content: DeliveredMessage
    /// Whether it is only checked.
    let isValidateOnly: Bool
    /// What is allowed but would not come from a careful caller; recorded in the journal.
    let notes: [String]
}
