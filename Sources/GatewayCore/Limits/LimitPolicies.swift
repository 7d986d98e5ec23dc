/// A bound on how often something may happen: at most `burst + rate·t/period` times in any span t.
package struct RatePolicy: Sendable, Hashable {
    /// How many are replenished in one period.
    package let rate: Int
    package let periodSeconds: Int
    /// How many may come at once.
    package let burst: Int
    /// Nanoseconds between two events at the steady rate, rounded up so that the bound holds exactly.
    package let interval: Int64

    /// The largest rate and burst; keeps all arithmetic within 64 bits.
    package static let maxCount = 1_000_000_000
    package static let maxPeriodSeconds = 86_400

    /// `nil` unless rate and burst are from 1 to ``maxCount``, the period from 1 to ``maxPeriodSeconds``, and a refill
    /// takes at most 30 days.
    package init?(rate: Int, periodSeconds: Int, burst: Int) {
        let counts = 1...Self.maxCount
        guard counts.contains(rate), counts.contains(burst), (1...Self.maxPeriodSeconds).contains(periodSeconds),
            burst * periodSeconds / rate <= 30 * 86_400
        else { return nil }
        self.init(checkedRate: rate, periodSeconds: periodSeconds, burst: burst)
    }

    private init(checkedRate rate: Int, periodSeconds: Int, burst: Int) {
        self.rate = rate
        self.periodSeconds = periodSeconds
        self.burst = burst
        self.interval = (Int64(periodSeconds) * 1_000_000_000 + Int64(rate) - 1) / Int64(rate)
    }

    private init(_ policy: RatePolicy, burst: Int, interval: Int64) {
        self.rate = policy.rate
        self.periodSeconds = policy.periodSeconds
        self.burst = burst
        self.interval = interval
    }

    /// The most replicas that a policy is divided by.
    static let maxReplicas = 1_000

    /// The policy by which each of so many replicas lets through its part alone: a burst of at least 1, and the rate
    /// divided, so that all of them let through no more than `max(burst, replicas) + rate·t/period`.
    func share(of replicas: Int) -> RatePolicy {
        let replicas = min(max(1, replicas), Self.maxReplicas)
        return RatePolicy(self, burst: max(1, self.burst / replicas), interval: self.interval * Int64(replicas))
    }

    /// FCM's documented ceilings for one device, kept in every window: 240 a minute and 5,000 an hour.
    package static let deviceDefaults = [
        RatePolicy(checkedRate: 180, periodSeconds: 60, burst: 60),
        RatePolicy(checkedRate: 4_000, periodSeconds: 3_600, burst: 1_000),
    ]
    /// Collapsible messages to one device: a burst of 20, then one every three minutes.
    package static let deviceCollapsibleDefaults = [RatePolicy(checkedRate: 1, periodSeconds: 180, burst: 20)]
    package static let topicDefaults = [RatePolicy(checkedRate: 900, periodSeconds: 60, burst: 100)]
    package static let tenantDefaults = [RatePolicy(checkedRate: 9_000, periodSeconds: 1, burst: 9_000)]
}

/// What a limit counts.
package enum LimitScope: String, Sendable, Hashable, CaseIterable {
    /// Everything a tenant sends; each recipient counts.
    case tenant
    /// Messages to one device.
    case device
    /// Messages with a collapse key to one device.
    case deviceCollapsible = "device_collapsible"
    /// Messages to one topic; a condition counts on each topic it names.
    case topic
}

/// The policies in force, by scope; every policy of a scope must admit an event.
package struct LimitPolicies: Sendable, Hashable {
    package static let maxPoliciesPerScope = 4

    package var tenant: [RatePolicy]
    package var device: [RatePolicy]
    package var deviceCollapsible: [RatePolicy]
    package var topic: [RatePolicy]

    /// By default those that keep FCM's documented ceilings.
    package init(
        tenant: [RatePolicy] = RatePolicy.tenantDefaults,
        device: [RatePolicy] = RatePolicy.deviceDefaults,
        deviceCollapsible: [RatePolicy] = RatePolicy.deviceCollapsibleDefaults,
        topic: [RatePolicy] = RatePolicy.topicDefaults
    ) {
        self.tenant = tenant
        self.device = device
        self.deviceCollapsible = deviceCollapsible
        self.topic = topic
    }

    package subscript(scope: LimitScope) -> [RatePolicy] {
        switch scope {
        case .tenant: self.tenant
        case .device: self.device
        case .deviceCollapsible: self.deviceCollapsible
        case .topic: self.topic
        }
    }

    func share(of replicas: Int) -> LimitPolicies {
        func share(_ policies: [RatePolicy]) -> [RatePolicy] { policies.map { $0.share(of: replicas) } }
        return LimitPolicies(
            tenant: share(self.tenant),
            device: share(self.device),
            deviceCollapsible: share(self.deviceCollapsible),
            topic: share(self.topic)
        )
    }

    package func overridden(by overrides: LimitOverrides) -> LimitPolicies {
        LimitPolicies(
            tenant: overrides[.tenant] ?? self.tenant,
            device: overrides[.device] ?? self.device,
            deviceCollapsible: overrides[.deviceCollapsible] ?? self.deviceCollapsible,
            topic: overrides[.topic] ?? self.topic
        )
    }
}

/// A tenant's own policies; an absent scope keeps the default, an empty list switches its limits off.
package struct LimitOverrides: Sendable, Hashable {
    private var policies: [LimitScope: [RatePolicy]] = [:]

    package init(
        tenant: [RatePolicy]? = nil,
        device: [RatePolicy]? = nil,
        deviceCollapsible: [RatePolicy]? = nil,
        topic: [RatePolicy]? = nil
    ) {
        self[.tenant] = tenant
        self[.device] = device
        self[.deviceCollapsible] = deviceCollapsible
        self[.topic] = topic
    }

    package subscript(scope: LimitScope) -> [RatePolicy]? {
        get { self.policies[scope] }
        set { self.policies[scope] = newValue }
    }

    package var scopes: Set<LimitScope> { Set(self.policies.keys) }
}

/// The policies in force for a tenant, and those that were before.
///
/// Each bucket notes the version of the policies that it was charged under. What is used up under former ones is carried
/// over when the bucket is next looked at, change by change, as of the moment of each.
package final class PolicyHistory: Sendable {
    /// Policies that are in force no longer.
    struct Former: Sendable, Hashable {
        var policies: LimitPolicies
        /// Until when they were, in nanoseconds since 1970.
        var until: Int64
    }

    /// How many former policies are remembered; a bucket that has not been charged since counts as charged under the
    /// first of them.
    static let maxFormer = 16

    package let policies: LimitPolicies
    /// Their number; it wraps.
    let version: UInt16
    /// Tells which of two replicas' policies came later: microseconds since 1970 at which this one learnt of them.
    ///
    /// Replicas that have learnt of the same policies differ in it, which does no harm. Each that learns of newer ones has
    /// a higher number than it had, whatever its clock does.
    package let revision: Int64
    /// The last policies before them, the oldest first.
    let former: [Former]

    package convenience init(_ policies: LimitPolicies, revision: Int64 = 0) {
        self.init(policies, version: 0, former: [], revision: revision)
    }

    init(_ policies: LimitPolicies, version: UInt16, former: [Former], revision: Int64 = 0) {
        self.policies = policies
        self.version = version
        self.revision = revision
        self.former = former
    }

    package func followed(by policies: LimitPolicies, at time: Timestamp) -> PolicyHistory {
        guard policies != self.policies else { return self }
        let former = self.former + [Former(policies: self.policies, until: time.microseconds * 1_000)]
        return PolicyHistory(
            policies,
            version: self.version &+ 1,
            former: former.suffix(Self.maxFormer),
            revision: max(self.revision + 1, time.microseconds)
        )
    }

    /// What each of so many replicas lets through alone, now and before.
    func share(of replicas: Int) -> PolicyHistory {
        guard replicas > 1 else { return self }
        return PolicyHistory(
            self.policies.share(of: replicas),
            version: self.version,
            former: self.former.map { Former(policies: $0.policies.share(of: replicas), until: $0.until) },
            revision: self.revision
        )
    }

    /// Whether a bucket's version is one that came after these policies, as a request meets that began before a change.
    func isBehind(_ version: UInt16) -> Bool {
        Int16(bitPattern: version &- self.version) > 0
    }

    /// The arrival times under the policies in force of a bucket that was charged under an earlier version.
    @inline(never)  // Once for each bucket and change.
    func carried(_ arrivals: SIMD4<Int64>, from version: UInt16, in scope: LimitScope) -> SIMD4<Int64> {
        let changes = min(Int(self.version &- version), self.former.count)
        var arrivals = arrivals
        for index in self.former.indices.suffix(changes) {
            let next = index + 1 < self.former.count ? self.former[index + 1].policies : self.policies
            let former = self.former[index]
            arrivals = Self.carried(arrivals, from: former.policies[scope], to: next[scope], at: former.until)
        }
        return arrivals
    }

    /// Each new policy takes over from the former one that is the same; else from the one of the next slower rate, under
    /// which more is used up than would be under the new one; else from the slowest.
    private static func carried(
        _ arrivals: SIMD4<Int64>,
        from former: [RatePolicy],
        to policies: [RatePolicy],
        at time: Int64
    ) -> SIMD4<Int64> {
        guard former != policies else { return arrivals }
        var carried = SIMD4<Int64>.zero
        for (index, policy) in policies.enumerated() {
            if let same = former.firstIndex(of: policy) {
                carried[index] = arrivals[same]
                continue
            }
            let slower = former.indices.filter { former[$0].interval >= policy.interval }
                .min { former[$0].interval < former[$1].interval }
            guard let source = slower ?? former.indices.max(by: { former[$0].interval < former[$1].interval }) else {
                continue
            }
            carried[index] = GCRA(former[source]).carried(arrivals[source], to: GCRA(policy), at: time)
        }
        return carried
    }
}
