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

/// One cause that stopped a whole send.
package struct SendRefusal: Sendable, Hashable {
    /// The cause.
    package var code: OutcomeCode
    /// Seconds to wait, where somebody named them.
    package var retryAfter: Int?
    /// Whose limit was hit, for the rate codes.
    package var limitedBy: Rejection.LimitSource?
    /// The scope of the gateway's limit that was hit.
    package var limitScope: LimitScope?
    /// The REST field at fault, if there is one.
    package var field: String?
    /// Why, where the code alone does not say it.
    package var detail: String?
    /// The legacy protocol's name for the cause, where it says more than the code.
    package var legacyName: LegacyErrorName?

    /// A refusal.
    package init(
        code: OutcomeCode,
        retryAfter: Int? = nil,
        limitedBy: Rejection.LimitSource? = nil,
        limitScope: LimitScope? = nil,
        field: String? = nil,
        detail: String? = nil,
        legacyName: LegacyErrorName? = nil
    ) {
        self.code = code
        self.retryAfter = retryAfter
        self.limitedBy = limitedBy
        self.limitScope = limitScope
        self.field = field
        self.detail = detail
        self.legacyName = legacyName
    }

    /// What each recipient of the send meets.
    package var rejection: Rejection {
        Rejection(
            code: self.code,
            retryAfter: self.retryAfter,
            limitedBy: self.limitedBy,
            legacyName: self.legacyName
        )
    }

    /// The refusal of a send whose quota is used up.
    init(_ denial: LimitDenial) {
        self.init(
            code: denial.scope.outcomeCode,
            retryAfter: denial.retryAfter,
            limitedBy: .gateway,
            limitScope: denial.scope
        )
    }
}

extension LimitScope {
    /// The code that tells of an exhausted quota.
    package var outcomeCode: OutcomeCode {
        switch self {
        case .tenant: .tenantRateExceeded
        case .device, .deviceCollapsible: .deviceRateExceeded
        case .topic: .topicRateExceeded
        }
    }
}

extension LimitDenial {
    /// What a single recipient's result says.
    var rejection: Rejection {
        Rejection(code: self.scope.outcomeCode, retryAfter: self.retryAfter, limitedBy: .gateway)
    }
}
