package import FCMModel

/// What a request about subscriptions came to.
package struct TopicAnswer<Value: Sendable>: Sendable {
    /// The shapes of an answer.
    package enum Content: Sendable {
        /// What was asked for.
        case value(Value)
        /// Nothing could be done, for one cause.
        case refused(Refusal)
    }

    /// The answer.
    package var content: Content
    /// The tenant's quotas after the request; empty where they were not asked.
    package var quotas: [QuotaStatus]

    /// An answer.
    package init(_ content: Content, quotas: [QuotaStatus] = []) {
        self.content = content
        self.quotas = quotas
    }
}
