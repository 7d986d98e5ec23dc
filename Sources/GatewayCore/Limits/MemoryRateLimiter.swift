/// Limits within one process.
package final class MemoryRateLimiter: RateLimiter {
    private let tenants: LimitTable
    private let devices: LimitTable
    private let collapsibles: LimitTable
    private let topics: LimitTable
    private let metrics: LimiterMetrics?

    /// A limiter with every quota whole.
    ///
    /// - Parameters:
    ///   - maxEntries: the bound on buckets held for each scope; the fullest are forgotten beyond it.
    ///   - metrics: counts its decisions.
    package init(maxEntries: Int = 4_000_000, metrics: LimiterMetrics? = nil) {
        self.tenants = LimitTable(maxEntries: maxEntries)
        self.devices = LimitTable(maxEntries: maxEntries)
        self.collapsibles = LimitTable(maxEntries: maxEntries)
        self.topics = LimitTable(maxEntries: maxEntries)
        self.metrics = metrics
    }

    /// The tables of all scopes, in the order in which they are kept.
    var scopes: [LimitTable] { [self.tenants, self.topics, self.devices, self.collapsibles] }

    /// How many buckets are held over all scopes.
    package var bucketCount: Int {
        self.tenants.count + self.devices.count + self.collapsibles.count + self.topics.count
    }

    /// Charges the tenant first, then each recipient; what a recipient does not use goes back to the tenant.
    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        self.decide(request, now.microseconds * 1_000)
    }

    @inline(never)  // What it works with stays out of the frames of whoever awaits it.
    private func decide(_ request: LimitRequest, _ now: Int64) -> LimitDecision {
        let start = self.metrics?.began()
        let admission =
            switch request.recipients {
            case .devices(let keys): self.admitDevices(keys, request, now)
            case .topics(let keys): self.admitTopics(keys, request, now)
            case .uncounted(let count): self.admitUncounted(count, request, now)
            }
        let quotas = self.tenants.status(request.tenant, policies: request.policies.tenant, now: now)
        self.metrics?.count(admission)
        if let start { self.metrics?.ended(since: start) }
        return LimitDecision(admission: admission, tenantQuotas: quotas)
    }

    /// Looks at each bucket and leaves it as it is.
    package func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        let now = now.microseconds * 1_000
        func entries(_ table: LimitTable, _ key: LimitKey, _ scope: LimitScope) -> [LimitStatus.Entry] {
            table.status(key, policies: request.policies[scope], now: now)
                .map { LimitStatus.Entry(scope: scope, quota: $0) }
        }
        let recipients =
            switch request.recipients {
            case .devices(let keys):
                keys.map { key in
                    entries(self.devices, key, .device)
                        + (request.isCollapsible ? entries(self.collapsibles, key, .deviceCollapsible) : [])
                }
            case .topics(let keys):
                keys.map { entries(self.topics, $0, .topic) }
            case .uncounted:
                [[LimitStatus.Entry]]()
            }
        return LimitStatus(
            tenant: self.tenants.status(request.tenant, policies: request.policies.tenant, now: now),
            recipients: recipients
        )
    }

    private func admitDevices(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, keys.count, policies: request.policies.tenant, now: now)
        guard tenant.granted > 0 else { return .none(self.tenantDenial(tenant, request, now)) }

        var denials: [LimitDenial?] = []
        var used = 0
        for (index, key) in keys.enumerated() {
            let denial =
                used == tenant.granted
                ? Self.denial(.tenant, wait: tenant.wait)
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
        // No recipient's quota has room, so one refusal says it all.
        if used == 0, let longest = denials.compactMap(\.self).max(by: { $0.retryAfter < $1.retryAfter }) {
            return .none(longest)
        }
        return .some(denials)
    }

    private func chargeDevice(_ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitDenial? {
        let device = self.devices.charge(key, 1, policies: request.policies.device, now: now)
        guard device.granted == 1 else {
            return Self.denial(.device, wait: max(device.wait, self.deviceWait(key, request, now)))
        }
        guard request.isCollapsible else { return nil }
        let collapsible = self.collapsibles.charge(key, 1, policies: request.policies.deviceCollapsible, now: now)
        guard collapsible.granted == 1 else {
            self.devices.refund(key, 1, policies: request.policies.device)
            return Self.denial(.deviceCollapsible, wait: collapsible.wait)
        }
        return nil
    }

    private func admitTopics(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, 1, policies: request.policies.tenant, now: now)
        guard tenant.granted == 1 else { return .none(self.tenantDenial(tenant, request, now)) }
        for (index, key) in keys.enumerated() {
            let topic = self.topics.charge(key, 1, policies: request.policies.topic, now: now)
            guard topic.granted == 1 else {
                for charged in keys[..<index] {
                    self.topics.refund(charged, 1, policies: request.policies.topic)
                }
                self.tenants.refund(request.tenant, 1, policies: request.policies.tenant)
                return .none(Self.denial(.topic, wait: max(topic.wait, self.topicsWait(keys, request, now))))
            }
        }
        return .all
    }

    private func admitUncounted(_ count: Int, _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, count, policies: request.policies.tenant, now: now)
        if tenant.granted == count { return .all }
        guard tenant.granted > 0 else { return .none(self.tenantDenial(tenant, request, now)) }
        let late = Self.denial(.tenant, wait: tenant.wait)
        return .some((0..<count).map { $0 < tenant.granted ? nil : late })
    }

    // MARK: Waiting

    /// The denial of a whole request by the tenant's quota; after its wait the recipients' quotas have room too.
    private func tenantDenial(_ charge: LimitTable.Charge, _ request: LimitRequest, _ now: Int64) -> LimitDenial {
        let recipients: Int64
        switch request.recipients {
        case .devices(let keys):
            // One device with room is enough to send something.
            var soonest = Int64.max
            for key in keys where soonest > 0 {
                soonest = min(soonest, self.deviceWait(key, request, now))
            }
            recipients = keys.isEmpty ? 0 : soonest
        case .topics(let keys):
            recipients = self.topicsWait(keys, request, now)
        case .uncounted:
            recipients = 0
        }
        return Self.denial(.tenant, wait: max(charge.wait, recipients))
    }

    private func deviceWait(_ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> Int64 {
        let device = self.devices.wait(key, policies: request.policies.device, now: now)
        guard request.isCollapsible else { return device }
        return max(device, self.collapsibles.wait(key, policies: request.policies.deviceCollapsible, now: now))
    }

    private func topicsWait(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> Int64 {
        keys.reduce(0) { max($0, self.topics.wait($1, policies: request.policies.topic, now: now)) }
    }

    private static func denial(_ scope: LimitScope, wait: Int64) -> LimitDenial {
        LimitDenial(scope: scope, retryAfter: LimitTable.seconds(wait))
    }
}
