/// Limits within one process.
package final class MemoryRateLimiter: RateLimiter {
    private let tenants: LimitTable
    private let devices: LimitTable
    private let collapsibles: LimitTable
    private let topics: LimitTable

    /// A limiter with every quota whole.
    ///
    /// - Parameter maxEntries: the bound on buckets held for each scope; the fullest are forgotten beyond it.
    package init(maxEntries: Int = 4_000_000) {
        self.tenants = LimitTable(maxEntries: maxEntries)
        self.devices = LimitTable(maxEntries: maxEntries)
        self.collapsibles = LimitTable(maxEntries: maxEntries)
        self.topics = LimitTable(maxEntries: maxEntries)
    }

    /// How many buckets are held over all scopes.
    package var bucketCount: Int {
        self.tenants.count + self.devices.count + self.collapsibles.count + self.topics.count
    }

    /// Charges the tenant first, then each recipient; what a recipient does not use goes back to the tenant.
    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        let now = now.microseconds * 1_000
        let admission =
            switch request.recipients {
            case .devices(let keys): self.admitDevices(keys, request, now)
            case .topics(let keys): self.admitTopics(keys, request, now)
            case .uncounted(let count): self.admitUncounted(count, request, now)
            }
        let quotas = self.tenants.status(request.tenant, policies: request.policies.tenant, now: now)
        return LimitDecision(admission: admission, tenantQuotas: quotas)
    }

    private func admitDevices(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, keys.count, policies: request.policies.tenant, now: now)
        guard tenant.granted > 0 else { return .none(Self.denial(.tenant, tenant)) }

        var denials: [LimitDenial?] = []
        var used = 0
        for (index, key) in keys.enumerated() {
            let denial =
                used == tenant.granted
                ? LimitDenial(scope: .tenant, retryAfter: 1)
                : self.chargeDevice(key, request, now)
            if denial == nil { used += 1 }
            // Nothing is allocated until the first denial.
            if let denial {
                if denials.isEmpty { denials = Array(repeating: nil, count: keys.count) }
                denials[index] = denial
            }
        }
        self.tenants.refund(request.tenant, tenant.granted - used, policies: request.policies.tenant)
        if denials.isEmpty { return .all }
        if used == 0, let worst = Self.commonCause(denials) { return .none(worst) }
        return .some(denials)
    }

    private func chargeDevice(_ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitDenial? {
        let device = self.devices.charge(key, 1, policies: request.policies.device, now: now)
        guard device.granted == 1 else { return Self.denial(.device, device) }
        guard request.isCollapsible else { return nil }
        let collapsible = self.collapsibles.charge(key, 1, policies: request.policies.deviceCollapsible, now: now)
        guard collapsible.granted == 1 else {
            self.devices.refund(key, 1, policies: request.policies.device)
            return Self.denial(.deviceCollapsible, collapsible)
        }
        return nil
    }

    private func admitTopics(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, 1, policies: request.policies.tenant, now: now)
        guard tenant.granted == 1 else { return .none(Self.denial(.tenant, tenant)) }
        for (index, key) in keys.enumerated() {
            let topic = self.topics.charge(key, 1, policies: request.policies.topic, now: now)
            guard topic.granted == 1 else {
                for charged in keys[..<index] {
                    self.topics.refund(charged, 1, policies: request.policies.topic)
                }
                self.tenants.refund(request.tenant, 1, policies: request.policies.tenant)
                return .none(Self.denial(.topic, topic))
            }
        }
        return .all
    }

    private func admitUncounted(_ count: Int, _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, count, policies: request.policies.tenant, now: now)
        if tenant.granted == count { return .all }
        guard tenant.granted > 0 else { return .none(Self.denial(.tenant, tenant)) }
        let late = LimitDenial(scope: .tenant, retryAfter: 1)
        return .some((0..<count).map { $0 < tenant.granted ? nil : late })
    }

    private static func denial(_ scope: LimitScope, _ charge: LimitTable.Charge) -> LimitDenial {
        LimitDenial(scope: scope, retryAfter: LimitTable.seconds(charge.wait))
    }

    /// The denial that speaks for all, where all are of one scope: the one with the longest wait.
    private static func commonCause(_ denials: [LimitDenial?]) -> LimitDenial? {
        let all = denials.compactMap { $0 }
        guard let scope = all.first?.scope, all.allSatisfy({ $0.scope == scope }) else { return nil }
        return all.max { $0.retryAfter < $1.retryAfter }
    }
}
