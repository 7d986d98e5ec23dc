import GatewayCore
import GatewayTestKit
import Testing

@Suite("RatePolicy")
struct RatePolicyTests {
    @Test(
        "Numbers in range make a policy",
        arguments: [(1, 1, 1), (1_000_000_000, 86_400, 1_000_000_000), (1, 86_400, 30), (180, 60, 60)]
    )
    func accepted(rate: Int, period: Int, burst: Int) throws {
        let policy = try #require(RatePolicy(rate: rate, periodSeconds: period, burst: burst))
        #expect((policy.rate, policy.periodSeconds, policy.burst) == (rate, period, burst))
    }

    @Test(
        "Numbers out of range make no policy",
        arguments: [
            (0, 1, 1), (-1, 1, 1), (1_000_000_001, 1, 1), (1, 0, 1), (1, -5, 1), (1, 86_401, 1), (1, 1, 0), (1, 1, -1),
            (1, 1, 1_000_000_001), (1, 86_400, 31), (1, 1, 2_592_001), (.max, .max, .max), (.min, .min, .min),
        ]
    )
    func refused(rate: Int, period: Int, burst: Int) {
        #expect(RatePolicy(rate: rate, periodSeconds: period, burst: burst) == nil)
    }

    @Test("The default policies stay within FCM's documented limits in every window")
    func ceilings() {
        func most(_ policy: RatePolicy, inSeconds seconds: Int) -> Int {
            policy.burst + policy.rate * seconds / policy.periodSeconds
        }
        #expect(RatePolicy.deviceDefaults.map { most($0, inSeconds: 60) }.min() == 240)
        #expect(RatePolicy.deviceDefaults.map { most($0, inSeconds: 3_600) }.min() == 5_000)
        #expect(RatePolicy.deviceCollapsibleDefaults.map { most($0, inSeconds: 180) } == [21])
        #expect(RatePolicy.topicDefaults.map { most($0, inSeconds: 60) } == [1_000])
        #expect(RatePolicy.tenantDefaults.map { most($0, inSeconds: 1) } == [18_000])
    }
}

@Suite("LimitPolicies")
struct LimitPoliciesTests {
    @Test("An override replaces its scope and no other", arguments: LimitScope.allCases)
    func overrides(scope: LimitScope) throws {
        let own = [try RatePolicy.sample(1, per: 2, burst: 3)]
        var overrides = LimitOverrides()
        overrides[scope] = own
        let defaults = LimitPolicies()
        let policies = defaults.overridden(by: overrides)
        for other in LimitScope.allCases {
            #expect(policies[other] == (other == scope ? own : defaults[other]))
        }
    }

    @Test("An empty override switches a scope's limits off")
    func emptyOverride() async {
        let policies = LimitPolicies().overridden(by: LimitOverrides(deviceCollapsible: []))
        #expect(policies.deviceCollapsible == [])
        let limiter = MemoryRateLimiter.withoutJitter()
        let request = LimitRequest(
            policies: LimitPolicies(tenant: [], device: [], deviceCollapsible: [], topic: []),
            recipients: .devices([.sample("device")]),
            isCollapsible: true
        )
        for _ in 0..<100 {
            #expect(await limiter.admit(request, now: .sample).admission == .all)
        }
        #expect(limiter.bucketCount == 0)
    }
}
