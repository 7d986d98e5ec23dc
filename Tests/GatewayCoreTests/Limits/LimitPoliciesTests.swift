import GatewayCore
import GatewayTestKit
import Testing

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
        let limiter = MemoryRateLimiter()
        let request = LimitRequest(
            tenant: .sample("tenant"),
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
