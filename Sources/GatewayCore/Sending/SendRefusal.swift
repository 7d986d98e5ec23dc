package import FCMModel

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
    package init(_ denial: LimitDenial) {
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
