import FCMModel

/// Decides whether messages may go out now.
package protocol RateLimiter: Sendable {
    /// Charges a request's quotas as far as they admit it; a refused recipient costs nothing, neither its own quota nor
    /// the tenant's.
    func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision

    /// What is left of the quotas that a request would be charged to; nothing is charged.
    func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus
}

extension RateLimiter {
    /// Charges a tenant for one call that brings no device a message; the refusal where its quota has no room.
    func charge(_ profile: TenantProfile, now: Timestamp) async -> Refusal? {
        let decision = await self.admit(LimitRequest(calls: 1, of: profile), now: now)
        guard case .none(let denial) = decision.admission else { return nil }
        return Refusal(denial)
    }
}

/// What a send would charge.
package struct LimitRequest: Sendable {
    /// Whom the message addresses.
    package enum Recipients: Sendable {
        /// These devices, each judged by itself.
        case devices([LimitKey])
        /// These topics, together or not at all.
        case topics([LimitKey])
        /// The tenant's quota alone, so many times: a dry run, or calls that bring no device a message.
        case tenantOnly(Int)
    }

    package var tenant: LimitKey
    package var history: PolicyHistory
    package var recipients: Recipients
    /// Further devices that get what a recipient gets, by its place: the members of device groups.
    ///
    /// A recipient and its members are charged together or not at all.
    package var members: [Int: [LimitKey]] = [:]
    package var isCollapsible: Bool

    package init(tenant: LimitKey, history: PolicyHistory, recipients: Recipients, isCollapsible: Bool) {
        self.tenant = tenant
        self.history = history
        self.recipients = recipients
        self.isCollapsible = isCollapsible
    }

    /// The same request where each of so many replicas keeps its part of the limits alone.
    package func share(of replicas: Int) -> LimitRequest {
        var request = self
        request.history = self.history.share(of: replicas)
        return request
    }

    /// Calls that bring no device a message: they cost the tenant's quota alone.
    package init(calls count: Int, of profile: TenantProfile) {
        (self.tenant, self.history) = (profile.limitKey, profile.policyHistory)
        (self.recipients, self.isCollapsible) = (.tenantOnly(count), false)
    }
}

/// How a limiter judged a request.
package struct LimitDecision: Sendable {
    /// Which recipients may be sent to.
    package enum Admission: Sendable, Hashable {
        case all
        /// Those whose entry is `nil`, in the request's order.
        case some([LimitDenial?])
        case none(LimitDenial)
    }

    package var admission: Admission
    /// The tenant's quotas after the charge, one for each policy; none where they could not be asked.
    package var tenantQuotas: [QuotaStatus]

    package init(admission: Admission, tenantQuotas: [QuotaStatus]) {
        self.admission = admission
        self.tenantQuotas = tenantQuotas
    }
}

/// A quota that is used up.
package struct LimitDenial: Sendable, Hashable {
    package var scope: LimitScope
    /// Whole seconds after which a repeat fits, where nobody comes but the recipients that were refused beside it, each
    /// when it was told to; at least 1.
    package var retryAfter: Int

    package init(scope: LimitScope, retryAfter: Int) {
        self.scope = scope
        self.retryAfter = max(1, retryAfter)
    }
}

/// What is left of the quotas that a send would be charged to.
package struct LimitStatus: Sendable, Hashable {
    /// One recipient's quota under one policy.
    package struct Entry: Sendable, Hashable {
        package var scope: LimitScope
        package var quota: QuotaStatus

        package init(scope: LimitScope, quota: QuotaStatus) {
            self.scope = scope
            self.quota = quota
        }
    }

    package var tenant: [QuotaStatus]
    /// The quotas of each device or topic, in the request's order; empty for a dry run, which spends none of them.
    package var recipients: [[Entry]]

    package init(tenant: [QuotaStatus], recipients: [[Entry]]) {
        self.tenant = tenant
        self.recipients = recipients
    }
}

/// What is left of one policy.
package struct QuotaStatus: Sendable, Hashable {
    package var policy: RatePolicy
    package var remaining: Int
    /// Seconds, rounded up, until one event fits where none does now, else until the quota is whole again.
    package var resetSeconds: Int

    package init(policy: RatePolicy, remaining: Int, resetSeconds: Int) {
        (self.policy, self.remaining, self.resetSeconds) = (policy, remaining, resetSeconds)
    }
}

/// What a bucket belongs to: 14 bytes that a keyed hash made of a tenant's token or topic.
///
/// The tenant is part of what was hashed, so no two tenants share a bucket. The two bytes that are left out hold a
/// bucket's version where it is stored.
package struct LimitKey: Sendable, Hashable {
    static let highMask = ~UInt64(UInt16.max)

    /// The first six bytes.
    let high: UInt64
    /// The last eight bytes; never 0, which marks a place without a bucket.
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high & Self.highMask
        self.low = max(1, low)
    }

    package init(_ pseudonym: Pseudonym) {
        self.init(high: pseudonym.high, low: pseudonym.low)
    }

    init(tenant: TenantID, _ pseudonymizer: Pseudonymizer) {
        self.init(pseudonymizer.pseudonym(of: tenant.text))
    }

    /// The key in hexadecimal digits, as names in a store outside this process have it.
    package var digits: [UInt8] {
        var digits: [UInt8] = []
        digits.append(hexadecimal: self.high)
        digits.removeLast(4)
        digits.append(hexadecimal: self.low)
        return digits
    }

    /// Which of so many parts holds the key; the hash is uniform, so its bits can be used as they are.
    func shard(of count: Int) -> Int {
        Int(truncatingIfNeeded: self.low % UInt64(count))
    }

    /// Hashes by the bits that are uniform already.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.low)
    }
}
