package import FCMModel

/// What became of a send.
package struct SendOutcome: Sendable {
    /// The shapes of an answer.
    package enum Answer: Sendable, Hashable {
        /// One recipient, a topic or a condition.
        case single(RecipientOutcome)
        /// One outcome for each recipient, in the request's order.
        case multiple([RecipientOutcome])
        /// Counts for a device group.
        case group(GroupOutcome)
        /// Nothing could be tried, for one cause.
        case refused(SendRefusal)
    }

    /// The message's id, under which it is audited.
    package var messageID: String
    /// The answer.
    package var answer: Answer
    /// The tenant's quotas after the send; empty where they were not asked.
    package var quotas: [QuotaStatus]
    /// The upstream's own answer, where a caller of the v1 facade gets it as it came.
    package var handedOn: V1HandedOn?

    /// An outcome.
    package init(messageID: String, answer: Answer, quotas: [QuotaStatus] = [], handedOn: V1HandedOn? = nil) {
        self.messageID = messageID
        self.answer = answer
        self.quotas = quotas
        self.handedOn = handedOn
    }
}

extension SendOutcome {
    /// The code of the first refusal; `nil` where everybody was accepted.
    package var code: OutcomeCode? {
        switch self.answer {
        case .refused(let refusal): refusal.code
        case .single(let outcome): outcome.refusalCode
        case .multiple(let outcomes): outcomes.lazy.compactMap(\.refusalCode).first
        case .group: nil
        }
    }
}

extension RecipientOutcome {
    fileprivate var refusalCode: OutcomeCode? {
        if case .rejected(let rejection) = self { rejection.code } else { nil }
    }
}
