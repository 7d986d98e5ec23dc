package import GatewayCore

/// A limiter as one would write it down first: buckets of credit that fills with time, every recipient judged by itself
/// against all its quotas at once, nothing shared, nothing dropped.
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
        let tenant = self.wait(.tenant, request.tenant, request)
        if tenant > 0 {
            let soonest = keys.map { self.deviceWait($0, request) }.min() ?? 0
            return .none(Self.denial(.tenant, max(self.tenantWait(for: keys.count, request), soonest)))
        }
        var scopes: [LimitScope?] = []
        for key in keys {
            if self.wait(.tenant, request.tenant, request) > 0 {
                scopes.append(.tenant)
            } else if self.wait(.device, key, request) > 0 {
                scopes.append(.device)
            } else if self.deviceWait(key, request) > 0 {
                scopes.append(.deviceCollapsible)
            } else {
                self.take(.tenant, request.tenant, request)
                self.takeDevice(key, request)
                scopes.append(nil)
            }
        }
        let refused = scopes.indices.filter { scopes[$0] != nil }
        if refused.isEmpty { return .all }
        let returns = self.returns(refused.map { keys[$0] }, request)
        if refused.count == keys.count, let last = returns.indices.max(by: { returns[$0] < returns[$1] }) {
            let tenant = Self.seconds(self.tenantWait(for: keys.count, request))
            return .none(LimitDenial(scope: scopes[last] ?? .tenant, retryAfter: max(tenant, returns[last])))
        }
        let told = self.told(returns, refused.map { keys[$0] }, request)
        var denials: [LimitDenial?] = keys.map { _ in nil }
        for (place, index) in refused.enumerated() {
            denials[index] = LimitDenial(scope: scopes[index] ?? .tenant, retryAfter: told[place])
        }
        return .some(denials)
    }

    /// After how many seconds each of some devices has room, one after the other where one is named repeatedly.
    private func returns(_ keys: [LimitKey], _ request: LimitRequest) -> [Int] {
        var futures: [LimitKey: LimiterModel] = [:]
        return keys.map { key in
            var future = futures[key] ?? self
            let wait = future.now + future.deviceWait(key, request) - self.now
            let seconds = max(1, Self.seconds(wait))
            future.fill(until: self.now + Int64(seconds) * 1_000_000_000, request.policies)
            future.takeDevice(key, request)
            futures[key] = future
            return seconds
        }
    }

    /// After how many seconds the tenant has room for each, in the order in which they come back.
    private func told(_ returns: [Int], _ keys: [LimitKey], _ request: LimitRequest) -> [Int] {
        var future = self
        var delays: [LimitKey: Int] = [:]
        var told = returns
        for place in returns.indices.sorted(by: { (returns[$0], $0) < (returns[$1], $1) }) {
            let wait = future.now + future.wait(.tenant, request.tenant, request) - self.now
            let own = returns[place] + (delays[keys[place]] ?? 0)
            told[place] = max(1, own, Self.seconds(wait))
            delays[keys[place]] = told[place] - returns[place]
            future.fill(until: self.now + Int64(told[place]) * 1_000_000_000, request.policies)
            future.take(.tenant, request.tenant, request)
        }
        return told
    }

    private mutating func admitTopics(_ keys: [LimitKey], _ request: LimitRequest) -> LimitDecision.Admission {
        let topics = keys.map { self.wait(.topic, $0, request) }.max() ?? 0
        let tenant = self.wait(.tenant, request.tenant, request)
        if tenant > 0 { return .none(Self.denial(.tenant, max(tenant, topics))) }
        if topics > 0 { return .none(Self.denial(.topic, topics)) }
        self.take(.tenant, request.tenant, request)
        for key in keys { self.take(.topic, key, request) }
        return .all
    }

    private mutating func admitTenantOnly(_ count: Int, _ request: LimitRequest) -> LimitDecision.Admission {
        if self.wait(.tenant, request.tenant, request) > 0 {
            return .none(Self.denial(.tenant, self.tenantWait(for: count, request)))
        }
        var granted = 0
        while granted < count, self.wait(.tenant, request.tenant, request) == 0 {
            self.take(.tenant, request.tenant, request)
            granted += 1
        }
        if granted == count { return .all }
        // Each stands for a caller of its own.
        let keys = (granted..<count).map { LimitKey.sample("call \($0)") }
        let told = self.told(keys.map { _ in 1 }, keys, request)
        return .some((0..<granted).map { _ in nil } + told.map { LimitDenial(scope: .tenant, retryAfter: $0) })
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

    /// Nanoseconds until so many events fit into the tenant's quota at once, or as many as ever do.
    private func tenantWait(for count: Int, _ request: LimitRequest) -> Int64 {
        zip(request.policies.tenant, self.credits(.tenant, request.tenant, request))
            .reduce(0) { max($0, Self.price($1.0) * Int64(min(count, $1.0.burst)) - $1.1) }
    }

    private mutating func takeDevice(_ key: LimitKey, _ request: LimitRequest) {
        self.take(.device, key, request)
        if request.isCollapsible { self.take(.deviceCollapsible, key, request) }
    }

    private func deviceWait(_ key: LimitKey, _ request: LimitRequest) -> Int64 {
        let device = self.wait(.device, key, request)
        return request.isCollapsible ? max(device, self.wait(.deviceCollapsible, key, request)) : device
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

    private static func denial(_ scope: LimitScope, _ wait: Int64) -> LimitDenial {
        LimitDenial(scope: scope, retryAfter: Self.seconds(wait))
    }
}
