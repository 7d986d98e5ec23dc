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
            device: [try .sample(1, per: 10, burst: 2)],
            deviceCollapsible: [try .sample(1, per: 100, burst: 1)],
            topic: [try .sample(1, per: 5, burst: 2)]
        )
    }

    private func admit(
        _ recipients: LimitRequest.Recipients,
        tenant: String = "tenant",
        isCollapsible: Bool = false,
        policies: LimitPolicies? = nil
    ) async -> LimitDecision {
        let request = LimitRequest(
            tenant: .sample(tenant),
            policies: policies ?? self.policies,
            recipients: recipients,
            isCollapsible: isCollapsible
        )
        return await self.limiter.admit(request, now: self.clock.now())
    }

    private func devices(_ names: String...) -> LimitRequest.Recipients {
        .devices(names.map { LimitKey.sample($0) })
    }

    private func topics(_ names: String...) -> LimitRequest.Recipients {
        .topics(names.map { LimitKey.sample($0) })
    }

    @Test("A recipient that is named repeatedly pays each time")
    func repeatedRecipient() async {
        let decision = await self.admit(self.devices("a", "a", "b", "a"))
        #expect(decision.admission == .some([nil, nil, nil, LimitDecision.Denial(scope: .device, retryAfter: 10)]))
        #expect(decision.tenantQuotas.map(\.remaining) == [7])
        let again = await self.admit(self.devices("c", "a", "a"))
        let denial = LimitDecision.Denial(scope: .device, retryAfter: 10)
        #expect(again.admission == .some([nil, denial, denial]))
    }

    @Test("When every recipient is over its limit, one denial with the longest wait speaks for all")
    func allRefused() async {
        _ = await self.admit(self.devices("a", "a"))
        self.clock.advance(by: .seconds(4))
        _ = await self.admit(self.devices("b", "b"))
        let decision = await self.admit(self.devices("a", "b", "a"))
        // The first is back after 6 seconds, the other after 10.
        #expect(decision.admission == .none(LimitDecision.Denial(scope: .device, retryAfter: 10)))
    }

    @Test("The tenant's quota admits the first recipients and tells the others how long it takes")
    func tenantRunsOut() async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 30, burst: 2)], device: self.policies.device)
        func late(_ seconds: Int) -> LimitDecision.Denial { LimitDecision.Denial(scope: .tenant, retryAfter: seconds) }
        let decision = await self.admit(self.devices("a", "b", "c", "d"), policies: policies)
        #expect(decision.admission == .some([nil, nil, late(60), late(60)]))
        #expect(await self.admit(self.devices("c"), policies: policies).admission == .none(late(30)))
        #expect(await self.admit(self.devices("c", "d"), policies: policies).admission == .none(late(60)))
        // More than two never fit at once.
        #expect(await self.admit(self.devices("c", "d", "e"), policies: policies).admission == .none(late(60)))
    }

    @Test("A collapsible message pays its own quota beside the device's")
    func collapsible() async {
        #expect(await self.admit(self.devices("a"), isCollapsible: true).admission == .all)
        let denial = LimitDecision.Admission.none(LimitDecision.Denial(scope: .deviceCollapsible, retryAfter: 100))
        #expect(await self.admit(self.devices("a"), isCollapsible: true).admission == denial)
        // The refusal cost the device nothing: one plain message still fits.
        #expect(await self.admit(self.devices("a")).admission == .all)
        #expect(
            await self.admit(self.devices("a")).admission == .none(LimitDecision.Denial(scope: .device, retryAfter: 10))
        )
    }

    @Test("A condition pays on each topic or on none")
    func topicsTogether() async {
        _ = await self.admit(self.topics("full"))
        _ = await self.admit(self.topics("full"))
        for _ in 0..<5 {
            let decision = await self.admit(self.topics("a", "full", "b"))
            #expect(decision.admission == .none(LimitDecision.Denial(scope: .topic, retryAfter: 5)))
            #expect(decision.tenantQuotas.map(\.remaining) == [8])
        }
        for _ in 0..<2 { #expect(await self.admit(self.topics("a", "b")).admission == .all) }
        #expect(
            await self.admit(self.topics("a")).admission == .none(LimitDecision.Denial(scope: .topic, retryAfter: 5))
        )
    }

    @Test("Tenants share nothing")
    func tenantsAreApart() async {
        let here = Pseudonymizer.sample("here").pseudonym(of: "token")
        let there = Pseudonymizer.sample("there").pseudonym(of: "token")
        for _ in 0..<2 {
            #expect(await self.admit(.devices([LimitKey(here)]), tenant: "here").admission == .all)
        }
        #expect(await self.admit(.devices([LimitKey(there)]), tenant: "there").admission == .all)
    }

    @Test("The quotas tell what is left of every policy of the tenant, and when it comes back")
    func quotas() async throws {
        let (fast, slow) = (try RatePolicy.sample(10, per: 1, burst: 10), try RatePolicy.sample(6, per: 60, burst: 4))
        let policies = LimitPolicies(tenant: [fast, slow])
        for (count, left, resets) in [(3, [7, 1], [1, 30]), (1, [6, 0], [1, 10])] {
            let quotas = await self.admit(.tenantOnly(count), policies: policies).tenantQuotas
            #expect(quotas.map(\.policy) == [fast, slow])
            #expect(quotas.map(\.remaining) == left)
            #expect(quotas.map(\.resetSeconds) == resets)
        }
    }

    @Test("A replica's share is charged to the bucket of the whole policy, whatever the number of replicas")
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

    @Test("A tenant without room is refused without being charged, and one with room is not")
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
        // A clock that is set back costs at most one burst, whoever asks.
        _ = await self.admit(self.devices("c", "d"), policies: policies)
        self.clock.advance(by: .seconds(-3_600))
        #expect(refusal(1)?.admission == .none(LimitDecision.Denial(scope: .tenant, retryAfter: 30)))
        self.clock.advance(by: .seconds(60))
        #expect(refusal(1) == nil)
    }

    @Test("Memory stays bounded under ever new devices, and idle ones make room")
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
