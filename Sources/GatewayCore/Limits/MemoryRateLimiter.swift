import Metrics
import Synchronization

/// Limits by what this process has let through; after a restart every bucket is full.
package final class MemoryRateLimiter: RateLimiter {
    private let tenants: LimitTable
    private let devices: LimitTable
    private let collapsibles: LimitTable
    private let topics: LimitTable
    private let metrics: LimiterMetrics?
    private let jitter: RetryJitter

    /// A limiter with every quota whole; of the buckets of a scope, the fullest are forgotten beyond the bound.
    ///
    /// The source is what metrics call it.
    package init(
        maxEntries: Int = 4_000_000,
        metrics: GatewayMetrics? = nil,
        source: String = "memory",
        jitter: @escaping RetryJitter = { .random(in: $0) }
    ) {
        self.tenants = LimitTable(.tenant, maxEntries: maxEntries)
        self.devices = LimitTable(.device, maxEntries: maxEntries)
        self.collapsibles = LimitTable(.deviceCollapsible, maxEntries: maxEntries)
        self.topics = LimitTable(.topic, maxEntries: maxEntries)
        self.metrics = metrics.map { LimiterMetrics($0, source: source) }
        self.jitter = jitter
    }

    package var bucketCount: Int {
        [self.tenants, self.devices, self.collapsibles, self.topics].reduce(0) { $0 + $1.count }
    }

    /// Charges the tenant first, then each recipient. The part of refused recipients is refunded to the tenant.
    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        self.decide(request, now.microseconds * 1_000)
    }

    @inline(never)  // Keeps the frame small.
    private func decide(_ request: LimitRequest, _ now: Int64) -> LimitDecision {
        let start = self.metrics?.began()
        var tenant = self.tenants.charge(request.tenant, request.count, under: request.policies, now: now)
        let granted = tenant.granted
        let admission: LimitDecision.Admission
        if granted == 0, request.count > 0 {
            admission = .none(self.tenantDenial(tenant.bucket, for: request.count, now))
        } else {
            switch request.recipients {
            case .devices(let keys): admission = self.admitDevices(keys, request, &tenant, now)
            case .topics(let keys): admission = self.admitTopics(keys, request, &tenant, now)
            case .tenantOnly(let count): admission = self.admitTenantOnly(count, tenant, now)
            }
        }
        // The unused part is refunded, in the bucket and in the reported quota.
        self.tenants.refund(request.tenant, granted - tenant.granted, under: request.policies, now: now)
        self.metrics?.count(admission)
        if let start { self.metrics?.ended(since: start) }
        return LimitDecision(admission: admission, tenantQuotas: tenant.bucket.quotas(at: now))
    }

    package func refusal(of tenant: LimitKey, _ policies: LimitPolicies, count: Int, now: Timestamp) -> LimitDecision? {
        let now = now.microseconds * 1_000
        guard self.tenants.bucket(tenant, under: policies).available(upTo: 1, at: now) == 0 else { return nil }
        // A charge of nothing corrects a stored time from before the clock was set back.
        let bucket = self.tenants.charge(tenant, 0, under: policies, now: now).bucket
        let admission = LimitDecision.Admission.none(self.tenantDenial(bucket, for: count, now))
        self.metrics?.count(admission)
        return LimitDecision(admission: admission, tenantQuotas: bucket.quotas(at: now))
    }

    package func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        let now = now.microseconds * 1_000
        // A charge of nothing corrects a stored time from before the clock was set back.
        func bucket(_ table: LimitTable, _ key: LimitKey) -> LimitBucket {
            table.charge(key, 0, under: request.policies, now: now).bucket
        }
        func entries(_ table: LimitTable, _ key: LimitKey, _ scope: LimitScope) -> [LimitStatus.Entry] {
            bucket(table, key).quotas(at: now)
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
            case .tenantOnly:
                [[LimitStatus.Entry]]()
            }
        return LimitStatus(
            tenant: bucket(self.tenants, request.tenant).quotas(at: now),
            recipients: recipients
        )
    }

    /// The events that the tenant's bucket granted to a request, and the bucket after it.
    private typealias Grant = (granted: Int, bucket: LimitBucket)

    private func admitDevices(
        _ keys: [LimitKey],
        _ request: LimitRequest,
        _ tenant: inout Grant,
        _ now: Int64
    ) -> LimitDecision.Admission {
        // Nothing is allocated until the first refusal.
        var denials: [LimitDecision.Denial?] = []
        var used = 0
        var index = 0
        while index < keys.count, used < tenant.granted {
            if let denial = self.chargeRecipient(index, keys[index], request, now) {
                if denials.isEmpty { denials = Array(repeating: nil, count: keys.count) }
                denials[index] = denial
            } else {
                used += 1
            }
            index += 1
        }
        tenant.bucket.refund(tenant.granted - used)
        tenant.granted = used
        if index < keys.count {
            if denials.isEmpty { denials = Array(repeating: nil, count: keys.count) }
            let denial = self.tenantDenial(tenant.bucket, for: keys.count - index, now)
            for late in index..<keys.count { denials[late] = denial }
        }
        return LimitDecision.Admission(denials)
    }

    /// Charges a recipient's own quotas, and those of all its members, or none and returns the denial.
    private func chargeRecipient(_ index: Int, _ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitDecision
        .Denial?
    {
        if let denial = self.chargeDevice(key, request, now) { return denial }
        guard !request.members.isEmpty, let members = request.members[index] else { return nil }
        for (place, member) in members.enumerated() {
            guard let denial = self.chargeDevice(member, request, now) else { continue }
            for charged in [key] + members[..<place] {
                self.devices.refund(charged, 1, under: request.policies, now: now)
                guard request.isCollapsible else { continue }
                self.collapsibles.refund(charged, 1, under: request.policies, now: now)
            }
            return denial
        }
        return nil
    }

    /// Charges a device's own quotas, both or none.
    private func chargeDevice(_ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitDecision.Denial? {
        let device = self.devices.charge(key, 1, under: request.policies, now: now)
        guard device.granted == 1 else { return self.denial(.device, device.bucket, now) }
        guard request.isCollapsible else { return nil }
        let collapsible = self.collapsibles.charge(key, 1, under: request.policies, now: now)
        if collapsible.granted == 1 { return nil }
        self.devices.refund(key, 1, under: request.policies, now: now)
        return self.denial(.deviceCollapsible, collapsible.bucket, now)
    }

    private func admitTopics(
        _ keys: [LimitKey],
        _ request: LimitRequest,
        _ tenant: inout Grant,
        _ now: Int64
    ) -> LimitDecision.Admission {
        for (index, key) in keys.enumerated() {
            let topic = self.topics.charge(key, 1, under: request.policies, now: now)
            guard topic.granted == 1 else {
                for charged in keys[..<index] {
                    self.topics.refund(charged, 1, under: request.policies, now: now)
                }
                tenant.bucket.refund(1)
                tenant.granted = 0
                return .none(self.denial(.topic, topic.bucket, now))
            }
        }
        return .all
    }

    private func admitTenantOnly(_ count: Int, _ tenant: Grant, _ now: Int64) -> LimitDecision.Admission {
        if tenant.granted == count { return .all }
        let denial = self.tenantDenial(tenant.bucket, for: count - tenant.granted, now)
        return .some((0..<count).map { $0 < tenant.granted ? nil : denial })
    }

    private func tenantDenial(_ bucket: LimitBucket, for count: Int, _ now: Int64) -> LimitDecision.Denial {
        LimitDecision.Denial(.tenant, wait: bucket.wait(for: count, at: now), self.jitter)
    }

    private func denial(_ scope: LimitScope, _ bucket: LimitBucket, _ now: Int64) -> LimitDecision.Denial {
        LimitDecision.Denial(scope, wait: bucket.wait(at: now), self.jitter)
    }
}

/// Counts a limiter's decisions, and times some of them.
package final class LimiterMetrics: Sendable {
    /// One decision of so many is timed: asking for the time twice would cost as much as the decision.
    private static let decisionsPerSample = 16

    private let admitted: Counter
    private let denied: [LimitScope: Counter]
    private let durations: Timer
    private let fallbackActive: Meter
    private let begun = Atomic(0)

    /// The source tells limiters apart.
    package init(_ metrics: GatewayMetrics, source: String) {
        self.admitted = metrics.counter(.limiterDecisions, LimitScope.tenant.rawValue, "admitted", source)
        self.denied = metrics.counters(.limiterDecisions, by: LimitScope.self, "denied", source)
        self.durations = metrics.timer(.limiterDuration, source)
        self.fallbackActive = metrics.gauge(.limiterFallbackActive)
        self.fallbackActive.set(0)
    }

    /// When a decision begins, if it is one of those that are timed: the first, and then every 16th.
    package func began() -> Uptime? {
        let number = self.begun.wrappingAdd(1, ordering: .relaxed).oldValue
        return number % Self.decisionsPerSample == 0 ? .now : nil
    }

    package func ended(since start: Uptime) {
        self.durations.recordNanoseconds(start.duration(to: .now).nanoseconds)
    }

    /// Shows whether limits that ought to be shared are not.
    package func show(isFallbackActive: Bool) {
        self.fallbackActive.set(isFallbackActive ? 1 : 0)
    }

    /// Counts a decision: once for a whole request, or once for each recipient of one that was admitted in part.
    package func count(_ admission: LimitDecision.Admission) {
        switch admission {
        case .all:
            self.admitted.increment()
        case .none(let denial):
            self.denied[denial.scope]?.increment()
        case .some(let denials):
            for denial in denials {
                if let denial { self.denied[denial.scope]?.increment() } else { self.admitted.increment() }
            }
        }
    }
}
