import FCMModel

/// Decides whether messages may go out now.
package protocol RateLimiter: Sendable {
    /// Charges a request's quotas as far as they admit it; a refused recipient costs nothing, neither its own quota nor
    /// the tenant's.
    func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision

    /// Returns the refusal of a request for so many messages if the tenant's bucket is known to have no room for one.
    ///
    /// Answers at once, from memory: where limits are in a store, `nil` may also mean that it has to be asked.
    func refusal(of tenant: LimitKey, _ policies: LimitPolicies, count: Int, now: Timestamp) -> LimitDecision?

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

    /// The refusal of a tenant's request for so much if its bucket is known to have no room for one, and what is left of
    /// its quotas.
    func refusal(
        of profile: TenantProfile,
        count: Int = 1,
        now: Timestamp
    ) -> (refusal: Refusal, quotas: [QuotaStatus])? {
        let decision = self.refusal(of: profile.limitKey, profile.limits, count: count, now: now)
        guard let decision, case .none(let denial) = decision.admission else { return nil }
        return (Refusal(denial), decision.tenantQuotas)
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
    package var policies: LimitPolicies
    package var recipients: Recipients
    /// Further devices that get what a recipient gets, by its place: the members of device groups.
    ///
    /// A recipient and its members are charged together or not at all.
    package var members: [Int: [LimitKey]] = [:]
    package var isCollapsible: Bool

    package init(tenant: LimitKey, policies: LimitPolicies, recipients: Recipients, isCollapsible: Bool = false) {
        self.tenant = tenant
        self.policies = policies
        self.recipients = recipients
        self.isCollapsible = isCollapsible
    }

    /// How many answers its recipients get; all topics of a request are one, and calls that bring no device a message none.
    package var recipientCount: Int {
        switch self.recipients {
        case .devices(let keys): keys.count
        case .topics: 1
        case .tenantOnly: 0
        }
    }

    /// How many events the tenant pays for.
    package var count: Int {
        if case .tenantOnly(let count) = self.recipients { count } else { self.recipientCount }
    }

    /// The same request where each of so many replicas keeps its part of the limits alone.
    package func share(of replicas: Int) -> LimitRequest {
        var request = self
        request.policies = self.policies.share(of: replicas)
        return request
    }

    /// Calls that bring no device a message: they cost the tenant's quota alone.
    package init(calls count: Int, of profile: TenantProfile) {
        (self.tenant, self.policies) = (profile.limitKey, profile.limits)
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
    /// Whole seconds, at least 1, after which the bucket has room for what it refused, or for as much as it ever has, if
    /// nothing else is charged to it.
    package var retryAfter: Int

    package init(scope: LimitScope, retryAfter: Int) {
        self.scope = scope
        self.retryAfter = max(1, retryAfter)
    }
}

/// Picks one number of a range at random.
package typealias RetryJitter = @Sendable (ClosedRange<Int>) -> Int

extension LimitDenial {
    /// A denial by a bucket that has room after a wait in nanoseconds.
    ///
    /// Up to a tenth of the wait, and at least up to a second, is added at random, so that callers that were refused
    /// together do not return together: a wait of 59.3 s becomes 60 to 66 s.
    package init(_ scope: LimitScope, wait: Int64, _ jitter: RetryJitter) {
        let seconds = max(1, LimitTable.seconds(wait))
        self.init(scope: scope, retryAfter: seconds + jitter(0...max(1, seconds / 10)))
    }
}

extension LimitDecision.Admission {
    /// What the denials of a list's recipients amount to: where all are refused, the longest one speaks for all.
    package init(_ denials: [LimitDenial?]) {
        guard denials.contains(where: { $0 != nil }) else {
            self = .all
            return
        }
        guard denials.allSatisfy({ $0 != nil }) else {
            self = .some(denials)
            return
        }
        let longest = denials.lazy.compactMap { $0 }.max { $0.retryAfter < $1.retryAfter }
        self = longest.map { .none($0) } ?? .all
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

/// What a bucket belongs to: the 16 bytes that a keyed hash made of a tenant's token or topic.
///
/// The tenant is part of what was hashed, so no two tenants share a bucket.
package struct LimitKey: Sendable, Hashable {
    /// No bucket's key.
    static let none = LimitKey()

    let high: UInt64
    /// Never 0, which marks a place without a bucket.
    let low: UInt64

    private init() { (self.high, self.low) = (0, 0) }

    init(high: UInt64, low: UInt64) {
        self.high = high
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
        digits.reserveCapacity(32)
        digits.append(hexadecimal: self.high)
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
