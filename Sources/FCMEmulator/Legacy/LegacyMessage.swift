/// A send request that passed every check.
struct LegacyMessage: Sendable, Equatable {
    let target: LegacyTarget
    let content: DeliveredMessage
    let isDryRun: Bool

    /// What is allowed but would not come from a careful caller; recorded in the journal.
    let notes: [String]
}
