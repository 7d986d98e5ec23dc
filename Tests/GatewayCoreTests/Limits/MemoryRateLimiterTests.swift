import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("MemoryRateLimiter")
struct MemoryRateLimiterTests {
    private let limiter = MemoryRateLimiter.withoutJitter()
    private let clock = ManualClock()
    private let policies: LimitPolicies

    init() throws {
        self.policies = LimitPolicies(
            tenant: [try .sample(10, per: 1, burst: 10)],
            device: [try .sample(1, per: 10, burst: 2)]
        )
    }

    private func admit(
        _ recipients: LimitRequest.Recipients,
        tenant: String = "tenant",
        policies: LimitPolicies? = nil
    ) async -> LimitDecision {
        let request = LimitRequest(
            tenant: .sample(tenant),
            policies: policies ?? self.policies,
            recipients: recipients
        )
        return await self.limiter.admit(request, now: self.clock.now())
    }

    private func devices(_ names: String...) -> LimitRequest.Recipients {
        .devices(names.map { LimitKey.sample($0) })
    }

    @Test("If every recipient is over its limit, the decision is one denial with the longest wait")
    func allRefused() async {
        _ = await self.admit(self.devices("a", "a"))
        self.clock.advance(by: .seconds(4))
        _ = await self.admit(self.devices("b", "b"))
        let decision = await self.admit(self.devices("a", "b", "a"))
        // The first has room after 6 seconds, the other after 10.
        #expect(decision.admission == .none(LimitDecision.Denial(scope: .device, retryAfter: 10)))
    }

    @Test("Tenants have separate device buckets")
    func tenantsAreApart() async {
        let here = Pseudonymizer.sample("here").pseudonym(of: "token")
        let there = Pseudonymizer.sample("there").pseudonym(of: "token")
        for _ in 0..<2 {
            #expect(await self.admit(.devices([LimitKey(here)]), tenant: "here").admission == .all)
        }
        #expect(await self.admit(.devices([LimitKey(there)]), tenant: "there").admission == .all)
    }

    @Test("A replica's share is charged to the bucket of the whole policy, for any number of replicas")
    func share() async throws {
        let policies = LimitPolicies(tenant: [try .sample(4, per: 60, burst: 4)])
        let request = LimitRequest(policies: policies, recipients: .devices([.sample("a")]))
        var admitted = 0
        for replicas in [2, 4, 1, 2, 4] {
            for _ in 0..<4 {
                let decision = await self.limiter.admit(request.share(of: replicas), now: self.clock.now())
                admitted += decision.admitted(of: 1)
            }
        }
        #expect(admitted <= 4)
    }

    @Test("The tenant check refuses a request over the tenant's quota and charges nothing")
    func tenantRefusal() async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 30, burst: 2)])
        func refusal(_ count: Int) -> LimitDecision? {
            self.limiter.refusal(of: .sample("tenant"), policies, count: count, now: self.clock.now())
        }
        #expect(refusal(1) == nil)
        _ = await self.admit(self.devices("a", "b"), policies: policies)
        for (count, wait) in [(1, 30), (2, 60), (9, 60)] {
            #expect(refusal(count)?.admission == .none(LimitDecision.Denial(scope: .tenant, retryAfter: wait)))
            #expect(refusal(count)?.tenantQuotas.map(\.remaining) == [0])
        }
        self.clock.advance(by: .seconds(30))
        #expect(refusal(1) == nil)
        // A clock that is set back costs at most one burst.
        _ = await self.admit(self.devices("c", "d"), policies: policies)
        self.clock.advance(by: .seconds(-3_600))
        #expect(refusal(1)?.admission == .none(LimitDecision.Denial(scope: .tenant, retryAfter: 30)))
        self.clock.advance(by: .seconds(60))
        #expect(refusal(1) == nil)
    }

    @Test("After the clock was set back, a status that is asked for again and again shows how the quota returns")
    func statusAfterStep() async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 30, burst: 2)])
        _ = await self.admit(self.devices("a", "b"), policies: policies)
        func remaining() async -> Int? {
            let asked = LimitRequest(tenant: .sample("tenant"), policies: policies, recipients: .tenantOnly(0))
            return await self.limiter.status(of: asked, now: self.clock.now()).tenant.first?.remaining
        }
        self.clock.advance(by: .seconds(-3_600))
        #expect(await remaining() == 0)
        self.clock.advance(by: .seconds(30))
        #expect(await remaining() == 1)
    }

    @Test("The number of buckets stays bounded while new devices arrive")
    func memory() async {
        let limiter = MemoryRateLimiter.withoutJitter(maxEntries: 20_000)
        func send(_ count: Int, _ name: String) async {
            for index in 0..<count {
                self.clock.advance(by: .microseconds(1))
                let request = LimitRequest(
                    policies: LimitPolicies(tenant: []),
                    recipients: .devices([.sample("\(name) \(index)")]),
                    isCollapsible: true
                )
                #expect(await limiter.admit(request, now: self.clock.now()).admission == .all)
            }
        }
        await send(60_000, "early")
        // Devices and collapsible messages are counted apart.
        #expect(limiter.bucketCount <= 2 * 20_000)
        #expect(limiter.bucketCount > 20_000)
        self.clock.advance(by: .seconds(86_400))
        await send(25_000, "late")
        #expect(limiter.bucketCount <= 2 * 20_000)
    }
}

@Suite("Metrics of the limiter")
struct LimiterMetricsTests {
    @Test("Every decision is counted; the first is timed, and then every 16th")
    func samples() async throws {
        let factory = TestMetrics()
        let limiter = MemoryRateLimiter.withoutJitter(metrics: GatewayMetrics(factory: factory))
        let timer = try factory.expectTimer("fcmgw_limiter_duration_seconds", [("source", "memory")])
        var samples: [Int] = []
        for index in 0..<34 {
            let request = LimitRequest(policies: LimitPolicies(), recipients: .devices([.sample("device \(index)")]))
            _ = await limiter.admit(request, now: .sample)
            samples.append(timer.values.count)
        }
        #expect(samples == Array(repeating: 1, count: 16) + Array(repeating: 2, count: 16) + [3, 3])
        let decisions = factory.counterTotal(
            label: "fcmgw_limiter_decisions_total",
            dimensions: [("scope", "tenant"), ("decision", "admitted"), ("source", "memory")]
        )
        #expect(decisions == 34)
        #expect(timer.values.allSatisfy { $0 >= 0 })
    }
}
