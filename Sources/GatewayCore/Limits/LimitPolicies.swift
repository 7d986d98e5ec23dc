import FCMModel

/// A bound on how often something may happen: at most `burst + rate·t/period` times in any span t.
package struct RatePolicy: Sendable, Hashable {
    /// The events that one period replenishes.
    package let rate: Int
    package let periodSeconds: Int
    /// The most events at once.
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

    /// The reason why a text is no policy.
    package struct Problem: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Reads `RATE/PERIOD:BURST`, such as `180/60s:60` or `4000/1h:1000`, as people write it everywhere.
    package init(parsing text: String) throws(Problem) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let rest = parts.last?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        guard parts.count == 2, rest.count == 2, let rate = Int(digits: parts[0]),
            let period = Int(secondsIn: rest[0]), let burst = Int(digits: rest[1])
        else { throw Problem(description: "expected RATE/PERIOD:BURST, such as 180/60s:60") }
        for (name, number, most) in [
            ("rate", rate, Self.maxCount), ("period in seconds", period, Self.maxPeriodSeconds),
            ("burst", burst, Self.maxCount),
        ] where !(1...most).contains(number) {
            throw Problem(description: "the \(name) must be from 1 to \(most), not \(number)")
        }
        guard let policy = RatePolicy(rate: rate, periodSeconds: period, burst: burst) else {
            throw Problem(description: "a policy must refill its burst within 30 days")
        }
        self = policy
    }

    /// The policy as ``init(parsing:)`` reads it.
    package var text: String { "\(self.rate)/\(self.periodSeconds)s:\(self.burst)" }

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

    /// The most replicas that a policy is divided among.
    static let maxReplicas = 1_000

    /// Returns one replica's share of the policy: the rate divided by the replicas, and a burst of at least 1. Together they
    /// admit at most `max(burst, replicas) + rate·t/period`.
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

/// The thing that a limit counts.
package enum LimitScope: String, Sendable, Hashable, CaseIterable {
    /// All messages of a tenant. Each recipient counts.
    case tenant
    /// Messages to one device.
    case device
    /// Messages with a collapse key to one device.
    case deviceCollapsible = "device_collapsible"
    /// Messages to one topic. A condition counts for each topic in it.
    case topic
}

/// The policies in force, by scope. Every policy of a scope must admit an event.
///
/// The digest of a scope's policies is part of the name of each bucket. A change of policies therefore starts with full
/// buckets, and the old ones expire. While a change spreads over replicas, both policies are in force. Together they admit at
/// most burst₁ + burst₂ + (rate₁ + rate₂)·t.
///
/// Example: 60/60s:10 becomes 120/60s:20. In the 5 s of the change, at most 10 + 20 + (1 + 2) · 5 = 45 events pass.
package final class LimitPolicies: Sendable, Hashable {
    package static let maxPoliciesPerScope = 4

    package let tenant: [RatePolicy]
    package let device: [RatePolicy]
    package let deviceCollapsible: [RatePolicy]
    package let topic: [RatePolicy]
    /// In the order of the scopes. A replica's share of the policies has the digests of the whole.
    private let digests: SIMD4<UInt64>

    /// The defaults keep within FCM's documented ceilings.
    package convenience init(
        tenant: [RatePolicy] = RatePolicy.tenantDefaults,
        device: [RatePolicy] = RatePolicy.deviceDefaults,
        deviceCollapsible: [RatePolicy] = RatePolicy.deviceCollapsibleDefaults,
        topic: [RatePolicy] = RatePolicy.topicDefaults
    ) {
        let digests = SIMD4([tenant, device, deviceCollapsible, topic].map(RatePolicy.digest(of:)))
        self.init([tenant, device, deviceCollapsible, topic], digests)
    }

    private init(_ policies: [[RatePolicy]], _ digests: SIMD4<UInt64>) {
        (self.tenant, self.device, self.deviceCollapsible, self.topic) = (
            policies[0], policies[1], policies[2], policies[3]
        )
        self.digests = digests
    }

    package subscript(scope: LimitScope) -> [RatePolicy] {
        switch scope {
        case .tenant: self.tenant
        case .device: self.device
        case .deviceCollapsible: self.deviceCollapsible
        case .topic: self.topic
        }
    }

    /// The name of a key's bucket under a scope's policies.
    package func bucketKey(_ key: LimitKey, _ scope: LimitScope) -> LimitKey {
        let digest =
            switch scope {
            case .tenant: self.digests[0]
            case .device: self.digests[1]
            case .deviceCollapsible: self.digests[2]
            case .topic: self.digests[3]
            }
        return LimitKey(high: key.high, low: key.low ^ digest)
    }

    /// Returns one replica's share of the policies, with the same buckets.
    package func share(of replicas: Int) -> LimitPolicies {
        let policies = [self.tenant, self.device, self.deviceCollapsible, self.topic]
        return LimitPolicies(policies.map { $0.map { $0.share(of: replicas) } }, self.digests)
    }

    package func overridden(by overrides: LimitOverrides) -> LimitPolicies {
        LimitPolicies(
            tenant: overrides[.tenant] ?? self.tenant,
            device: overrides[.device] ?? self.device,
            deviceCollapsible: overrides[.deviceCollapsible] ?? self.deviceCollapsible,
            topic: overrides[.topic] ?? self.topic
        )
    }

    package static func == (left: LimitPolicies, right: LimitPolicies) -> Bool {
        LimitScope.allCases.allSatisfy { left[$0] == right[$0] }
    }

    package func hash(into hasher: inout Hasher) {
        for scope in LimitScope.allCases { hasher.combine(self[scope]) }
    }
}

extension RatePolicy {
    /// The 64-bit FNV-1a hash of a scope's policies, the same in each process and release; 0 without policies.
    fileprivate static func digest(of policies: [RatePolicy]) -> UInt64 {
        guard !policies.isEmpty else { return 0 }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for number in policies.flatMap({ [$0.rate, $0.periodSeconds, $0.burst] }) {
            for shift in stride(from: 0, to: 64, by: 8) {
                hash = (hash ^ UInt64(truncatingIfNeeded: number >> shift) & 0xFF) &* 0x0100_0000_01B3
            }
        }
        return hash
    }
}

/// A tenant's own policies. An absent scope keeps the default, an empty list removes its limits.
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
