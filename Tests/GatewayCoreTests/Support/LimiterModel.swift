import GatewayCore

/// A limiter as one would write it down first: buckets of credit that fills with time, every recipient judged by itself
/// against all its quotas at once, nothing shared, nothing dropped.
struct LimiterModel {
    private struct BucketName: Hashable {
        var scope: LimitScope
        var key: LimitKey
    }

    /// Nanoseconds of credit, one amount for each policy.
    private var credits: [BucketName: [Int64]] = [:]
    private var now: Int64 = 0

    mutating func admit(_ request: LimitRequest, now: Timestamp) -> LimitDecision {
        self.fill(until: now.microseconds * 1_000, request.policies)
        let admission =
            switch request.recipients {
            case .devices(let keys): self.admitDevices(keys, request)
            case .topics(let keys): self.admitTopics(keys, request)
            case .uncounted(let count): self.admitUncounted(count, request)
            }
        return LimitDecision(admission: admission, tenantQuotas: self.quotas(request))
    }

    private mutating func admitDevices(_ keys: [LimitKey], _ request: LimitRequest) -> LimitDecision.Admission {
        let tenant = self.wait(.tenant, request.tenant, request)
        if tenant > 0 {
            let soonest = keys.map { self.deviceWait($0, request) }.min() ?? 0
            return .none(Self.denial(.tenant, max(tenant, soonest)))
        }
        var denials: [LimitDenial?] = []
        for key in keys {
            let tenant = self.wait(.tenant, request.tenant, request)
            if tenant > 0 {
                denials.append(Self.denial(.tenant, tenant))
            } else if self.wait(.device, key, request) > 0 {
                denials.append(Self.denial(.device, self.deviceWait(key, request)))
            } else if self.deviceWait(key, request) > 0 {
                denials.append(Self.denial(.deviceCollapsible, self.deviceWait(key, request)))
            } else {
                self.take(.tenant, request.tenant, request)
                self.take(.device, key, request)
                if request.isCollapsible { self.take(.deviceCollapsible, key, request) }
                denials.append(nil)
            }
        }
        let refused = denials.compactMap(\.self)
        if refused.isEmpty { return .all }
        if refused.count == keys.count, let longest = refused.max(by: { $0.retryAfter < $1.retryAfter }) {
            return .none(longest)
        }
        return .some(denials)
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

    private mutating func admitUncounted(_ count: Int, _ request: LimitRequest) -> LimitDecision.Admission {
        var denials: [LimitDenial?] = []
        for _ in 0..<count {
            let wait = self.wait(.tenant, request.tenant, request)
            if wait == 0 { self.take(.tenant, request.tenant, request) }
            denials.append(wait == 0 ? nil : Self.denial(.tenant, wait))
        }
        guard let last = denials.last?.flatMap(\.self) else { return .all }
        return denials.first?.flatMap(\.self) == nil ? .some(denials) : .none(last)
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
