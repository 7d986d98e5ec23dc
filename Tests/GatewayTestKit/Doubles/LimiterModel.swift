package import GatewayCore

/// A naive limiter for comparison: buckets hold credit that grows with time, and each recipient is checked separately
/// against all its quotas. Nothing is shared or dropped.
package struct LimiterModel {
    private struct BucketName: Hashable {
        var scope: LimitScope
        var key: LimitKey
    }

    /// Nanoseconds of credit, one amount for each policy.
    private var credits: [BucketName: [Int64]] = [:]
    private var now: Int64 = 0

    package init() {}

    package mutating func admit(_ request: LimitRequest, now: Timestamp) -> LimitDecision {
        self.fill(until: now.microseconds * 1_000, request.policies)
        let admission =
            switch request.recipients {
            case .devices(let keys): self.admitDevices(keys, request)
            case .topics(let keys): self.admitTopics(keys, request)
            case .tenantOnly(let count): self.admitTenantOnly(count, request)
            }
        return LimitDecision(admission: admission, tenantQuotas: self.quotas(request))
    }

    private mutating func admitDevices(_ keys: [LimitKey], _ request: LimitRequest) -> LimitDecision.Admission {
        var denials: [LimitDecision.Denial?] = []
        var refusedByTenant: [Int] = []
        for (index, key) in keys.enumerated() {
            denials.append(nil)
            let (device, collapsible) = (self.wait(.device, key, request), self.collapsibleWait(key, request))
            if self.wait(.tenant, request.tenant, request) > 0 {
                refusedByTenant.append(index)
            } else if device > 0 {
                denials[index] = Self.denial(.device, device)
            } else if collapsible > 0 {
                denials[index] = Self.denial(.deviceCollapsible, collapsible)
            } else {
                self.take(.tenant, request.tenant, request)
                self.takeDevice(key, request)
            }
        }
        for index in refusedByTenant {
            denials[index] = Self.denial(.tenant, self.tenantWait(for: refusedByTenant.count, request))
        }
        let refused = denials.compactMap { $0 }
        if refused.isEmpty { return .all }
        let longest = refused.map(\.retryAfter).max()
        if refused.count == keys.count, let first = refused.first(where: { $0.retryAfter == longest }) {
            return .none(first)
        }
        return .some(denials)
    }

    private mutating func admitTopics(_ keys: [LimitKey], _ request: LimitRequest) -> LimitDecision.Admission {
        let tenant = self.wait(.tenant, request.tenant, request)
        if tenant > 0 { return .none(Self.denial(.tenant, tenant)) }
        for key in keys where self.wait(.topic, key, request) > 0 {
            return .none(Self.denial(.topic, self.wait(.topic, key, request)))
        }
        self.take(.tenant, request.tenant, request)
        for key in keys { self.take(.topic, key, request) }
        return .all
    }

    private mutating func admitTenantOnly(_ count: Int, _ request: LimitRequest) -> LimitDecision.Admission {
        var granted = 0
        while granted < count, self.wait(.tenant, request.tenant, request) == 0 {
            self.take(.tenant, request.tenant, request)
            granted += 1
        }
        if granted == count { return .all }
        let denial = Self.denial(.tenant, self.tenantWait(for: count - granted, request))
        return granted == 0 ? .none(denial) : .some((0..<count).map { $0 < granted ? nil : denial })
    }

    private func quotas(_ request: LimitRequest) -> [QuotaStatus] {
        zip(request.policies.tenant, self.credits(.tenant, request.tenant, request))
            .map { policy, credit in
                let remaining = Int(credit / Self.price(policy))
                let target = remaining > 0 ? Self.full(policy) : Self.price(policy)
                return QuotaStatus(policy: policy, remaining: remaining, resetSeconds: Self.seconds(target - credit))
            }
    }

    private mutating func fill(until now: Int64, _ policies: LimitPolicies) {
        let elapsed = now - self.now
        self.now = now
        for (name, credits) in self.credits {
            self.credits[name] = zip(policies[name.scope], credits).map { min(Self.full($0), $1 + elapsed) }
        }
    }

    private mutating func take(_ scope: LimitScope, _ key: LimitKey, _ request: LimitRequest) {
        let credits = self.credits(scope, key, request)
        self.credits[BucketName(scope: scope, key: key)] = zip(request.policies[scope], credits)
            .map { $1 - Self.price($0) }
    }

    private func credits(_ scope: LimitScope, _ key: LimitKey, _ request: LimitRequest) -> [Int64] {
        self.credits[BucketName(scope: scope, key: key)] ?? request.policies[scope].map(Self.full)
    }

    private func wait(_ scope: LimitScope, _ key: LimitKey, _ request: LimitRequest) -> Int64 {
        zip(request.policies[scope], self.credits(scope, key, request))
            .reduce(0) { max($0, Self.price($1.0) - $1.1) }
    }

    /// Nanoseconds until `count` events fit into the tenant's quotas at once; a larger count waits for a full burst.
    private func tenantWait(for count: Int, _ request: LimitRequest) -> Int64 {
        zip(request.policies.tenant, self.credits(.tenant, request.tenant, request))
            .reduce(0) { max($0, Self.price($1.0) * Int64(min(count, $1.0.burst)) - $1.1) }
    }

    private mutating func takeDevice(_ key: LimitKey, _ request: LimitRequest) {
        self.take(.device, key, request)
        if request.isCollapsible { self.take(.deviceCollapsible, key, request) }
    }

    private func collapsibleWait(_ key: LimitKey, _ request: LimitRequest) -> Int64 {
        request.isCollapsible ? self.wait(.deviceCollapsible, key, request) : 0
    }

    private static func price(_ policy: RatePolicy) -> Int64 {
        let period = Int64(policy.periodSeconds) * 1_000_000_000
        return period / Int64(policy.rate) + (period % Int64(policy.rate) == 0 ? 0 : 1)
    }

    private static func full(_ policy: RatePolicy) -> Int64 {
        Self.price(policy) * Int64(policy.burst)
    }

    private static func seconds(_ nanoseconds: Int64) -> Int {
        Int(nanoseconds / 1_000_000_000) + (nanoseconds % 1_000_000_000 == 0 ? 0 : 1)
    }

    private static func denial(_ scope: LimitScope, _ wait: Int64) -> LimitDecision.Denial {
        LimitDecision.Denial(scope: scope, retryAfter: Self.seconds(wait))
    }
}
