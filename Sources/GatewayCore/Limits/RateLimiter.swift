/// Decides whether messages may go out now.
package protocol RateLimiter: Sendable {
    /// Charges a request's quotas as far as they admit it.
    ///
    /// A refused recipient costs nothing, neither its own quota nor the tenant's.
    func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision

    /// What is left of the quotas that a request would be charged to; nothing is charged.
    func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus
}

/// What a send would charge.
package struct LimitRequest: Sendable {
    /// Whom the message addresses.
    package enum Recipients: Sendable {
        /// These devices, each judged by itself.
        case devices([LimitKey])
        /// These topics, together or not at all.
        case topics([LimitKey])
        /// Nobody's quota but the tenant's: a dry run.
        case uncounted(Int)
    }

    /// The tenant's own bucket.
    package var tenant: LimitKey
    /// The policies in force for the tenant, and those before them.
    package var history: PolicyHistory
    /// The recipients.
    package var recipients: Recipients
    /// Further devices that get what a recipient gets, by its place: the members of device groups.
    ///
    /// A recipient and its members are charged together or not at all.
    package var members: [Int: [LimitKey]] = [:]
    /// Whether the message carries a collapse key.
    package var isCollapsible: Bool

    /// A request.
    package init(tenant: LimitKey, history: PolicyHistory, recipients: Recipients, isCollapsible: Bool) {
        self.tenant = tenant
        self.history = history
        self.recipients = recipients
        self.isCollapsible = isCollapsible
    }

    /// Calls that bring no device a message: they cost the tenant's quota alone.
    package init(calls count: Int, of profile: TenantProfile) {
        self.init(
            tenant: profile.limitKey,
            history: profile.policyHistory,
            recipients: .uncounted(count),
            isCollapsible: false
        )
    }
}

/// How a limiter judged a request.
package struct LimitDecision: Sendable {
    /// Which recipients may be sent to.
    package enum Admission: Sendable, Hashable {
        /// All of them.
        case all
        /// Those whose entry is `nil`, in the request's order.
        case some([LimitDenial?])
        /// None, for this one cause.
        case none(LimitDenial)
    }

    /// Which recipients may be sent to.
    package var admission: Admission
    /// The tenant's quotas after the charge, one for each policy.
    package var tenantQuotas: [QuotaStatus]

    /// A decision.
    package init(admission: Admission, tenantQuotas: [QuotaStatus]) {
        self.admission = admission
        self.tenantQuotas = tenantQuotas
    }
}

/// A quota that is used up.
package struct LimitDenial: Sendable, Hashable {
    /// Whose.
    package var scope: LimitScope
    /// Whole seconds after which a repeat fits, where nobody comes but the recipients that were refused beside it, each
    /// when it was told to; at least 1.
    package var retryAfter: Int

    /// A denial.
    package init(scope: LimitScope, retryAfter: Int) {
        self.scope = scope
        self.retryAfter = max(1, retryAfter)
    }
}
