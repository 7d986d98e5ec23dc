package import FCMModel

/// Decides whether messages may go out now.
package protocol RateLimiter: Sendable {
    /// Charges a request's quotas as far as they admit it. A refused recipient costs neither its own quota nor the
    /// tenant's.
    func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision

    /// Returns the refusal of a request for so many messages if the tenant's bucket is known to have no room for one.
    ///
    /// Answers from memory. If limits are in a store, `nil` may also mean that the store must be asked.
    func refusal(of tenant: LimitKey, _ policies: LimitPolicies, count: Int, now: Timestamp) -> LimitDecision?

    /// Returns the rest of the quotas that a request would be charged to, and charges nothing.
    func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus
}

extension RateLimiter {
    /// Charges a tenant for one call that brings no device a message. Throws if its quota has no room.
    func charge(_ profile: TenantProfile, now: Timestamp) async throws(Refusal) {
        let decision = await self.admit(LimitRequest(calls: 1, of: profile), now: now)
        if case .none(let denial) = decision.admission { throw Refusal(denial) }
    }

    /// Returns the refusal of a tenant's request for so many messages, and the rest of its quotas, if its bucket is
    /// known to have no room for one.
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

/// The charges of a send.
package struct LimitRequest: Sendable {
    /// The recipients of the message.
    package enum Recipients: Sendable {
        /// Devices, each admitted or refused by itself.
        case devices([LimitKey])
        /// Topics, admitted together or not at all.
        case topics([LimitKey])
        /// The tenant's quota alone, this many times: a dry run, or calls that bring no device a message.
        case tenantOnly(Int)
    }

    package var tenant: LimitKey
    package var policies: LimitPolicies
    package var recipients: Recipients
    /// The members of device groups, by the place of the recipient that names the group.
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

    /// The number of recipients with an answer of their own. All topics of a request count as one, and calls that bring
    /// no device a message as none.
    package var recipientCount: Int {
        switch self.recipients {
        case .devices(let keys): keys.count
        case .topics: 1
        case .tenantOnly: 0
        }
    }

    /// The number of events charged to the tenant.
    package var count: Int {
        if case .tenantOnly(let count) = self.recipients { count } else { self.recipientCount }
    }

    /// Returns the same request with one replica's share of the limits.
    package func share(of replicas: Int) -> LimitRequest {
        var request = self
        request.policies = self.policies.share(of: replicas)
        return request
    }

    /// Charges the tenant's quota alone, for calls that bring no device a message.
    package init(calls count: Int, of profile: TenantProfile) {
        (self.tenant, self.policies) = (profile.limitKey, profile.limits)
        (self.recipients, self.isCollapsible) = (.tenantOnly(count), false)
    }
}

/// A limiter's decision on a request.
package struct LimitDecision: Sendable {
    /// A quota that is used up.
    package struct Denial: Sendable, Hashable {
        package var scope: LimitScope
        /// Whole seconds, at least 1, until the bucket has room for the refused events, or is full if they exceed its
        /// burst, provided that nothing else is charged to it.
        package var retryAfter: Int

        package init(scope: LimitScope, retryAfter: Int) {
            self.scope = scope
            self.retryAfter = max(1, retryAfter)
        }
    }

    /// The recipients that may be sent to.
    package enum Admission: Sendable, Hashable {
        case all
        /// The recipients whose entry is `nil`, in the request's order.
        case some([Denial?])
        case none(Denial)
    }

    package var admission: Admission
    /// The tenant's quotas after the charge, one for each policy. Empty if they could not be read.
    package var tenantQuotas: [QuotaStatus]

    package init(admission: Admission, tenantQuotas: [QuotaStatus]) {
        self.admission = admission
        self.tenantQuotas = tenantQuotas
    }
}

/// The answer to a request that the tenant's quota pays for.
package struct ChargedAnswer<Value: Sendable>: Sendable {
    package var result: Result<Value, Refusal>
    /// The tenant's quotas after the request; empty if they were not asked.
    package var quotas: [QuotaStatus]

    package init(_ result: Result<Value, Refusal>, quotas: [QuotaStatus] = []) {
        (self.result, self.quotas) = (result, quotas)
    }
}

/// Picks one number of a range at random.
package typealias RetryJitter = @Sendable (ClosedRange<Int>) -> Int

extension LimitDecision.Denial {
    /// A denial by a bucket that has room after a wait in nanoseconds.
    ///
    /// A random part of up to a tenth of the wait, or up to a second if that is more, keeps callers that were refused
    /// together from returning together. Example: a wait of 59.3 s becomes 60 to 66 s.
    package init(_ scope: LimitScope, wait: Int64, _ jitter: RetryJitter) {
        let seconds = max(1, LimitTable.seconds(wait))
        self.init(scope: scope, retryAfter: seconds + jitter(0...max(1, seconds / 10)))
    }
}

extension LimitDecision.Admission {
    /// Combines the denials of a list's recipients. If all are refused, the one with the longest wait stands for all.
    package init(_ denials: [LimitDecision.Denial?]) {
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

/// The rest of the quotas that a send would be charged to.
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
    /// The quotas of each device or topic, in the request's order. Empty for a dry run, which charges none of them.
    package var recipients: [[Entry]]

    package init(tenant: [QuotaStatus], recipients: [[Entry]]) {
        self.tenant = tenant
        self.recipients = recipients
    }
}

/// The rest of one policy's quota.
package struct QuotaStatus: Sendable, Hashable {
    package var policy: RatePolicy
    package var remaining: Int
    /// Seconds, rounded up, until the quota is full again, or until one event fits if none does now.
    package var resetSeconds: Int

    package init(policy: RatePolicy, remaining: Int, resetSeconds: Int) {
        (self.policy, self.remaining, self.resetSeconds) = (policy, remaining, resetSeconds)
    }
}

/// The owner of a bucket: a keyed hash, 16 bytes long, of a tenant's token or topic.
///
/// The tenant is part of the hashed bytes, so no two tenants share a bucket.
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

    /// The number of the key's digits.
    package static let digitCount = 32

    /// Appends the key in hexadecimal digits, as it appears in names outside this process.
    package func appendDigits(to bytes: inout [UInt8]) {
        bytes.append(hexadecimal: self.high)
        bytes.append(hexadecimal: self.low)
    }

    /// Returns which of so many shards holds the key. The hash is uniform, so its bits need no further hashing.
    func shard(of count: Int) -> Int {
        Int(truncatingIfNeeded: self.low % UInt64(count))
    }

    /// Hashes by the bits that are uniform already.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.low)
    }
}
