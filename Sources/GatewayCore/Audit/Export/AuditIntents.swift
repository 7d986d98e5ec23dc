/// Finds intents that no outcome followed: what was about to be done when a process was killed.
///
/// Pure: it is shown the records in the order in which they were written. It remembers no more than is open.
package struct AuditIntents: Sendable {
    private struct Key: Hashable {
        let tenant: String?
        let action: String
        /// The message's id, or the request's where there is no message.
        let id: String
    }

    private var open: [Key: [ChainedAuditRecord]] = [:]

    /// No intent yet.
    package init() {}

    /// Takes a record: an intent, or the outcome of one.
    package mutating func take(_ chained: ChainedAuditRecord) {
        let record = chained.record
        let key = Key(tenant: record.tenant, action: record.action, id: record.messageID ?? record.requestID)
        if record.outcome == .intent {
            self.open[key, default: []].append(chained)
        } else if var intents = self.open[key] {
            // A request's id may come twice; each outcome ends one intent.
            intents.removeFirst()
            self.open[key] = intents.isEmpty ? nil : intents
        }
    }

    /// The intents without an outcome, oldest first.
    package var withoutOutcome: [ChainedAuditRecord] {
        self.open.values.joined().sorted { ($0.writer, $0.sequence) < ($1.writer, $1.sequence) }
    }
}
