import GatewayCore
import GatewayTestKit
import Testing

/// A policy admits at most `burst + rate·t/period` events in any span t.
@Suite("The bound of a rate policy")
struct RateBoundTests {
    private static let device = LimitKey.sample("device")

    private static func request(_ policies: [RatePolicy], count: Int = 1) -> LimitRequest {
        LimitRequest(policies: .device(policies), device: self.device, count: count)
    }

    private static func isWithin(_ policy: RatePolicy, _ count: Int, inMicroseconds span: Int64) -> Bool {
        Int64(count - policy.burst) * Int64(policy.periodSeconds) * 1_000_000 <= Int64(policy.rate) * span
    }

    @Test("Admissions in any span stay within the bound of every policy", arguments: 0..<60)
    func anySpan(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let policies = try LimitPolicies.random(using: &generator).device
        let limiter = MemoryRateLimiter.withoutJitter()
        let clock = ManualClock()
        var admissions: [Int64] = []
        for _ in 0..<300 {
            clock.advance(by: .random(using: &generator))
            let count = Int.random(in: 1...4, using: &generator)
            let decision = await limiter.admit(Self.request(policies, count: count), now: clock.now())
            let admitted = decision.admitted(of: count)
            admissions += Array(repeating: clock.now().microseconds, count: admitted)
        }
        #expect(!admissions.isEmpty)
        for policy in policies {
            let broken = admissions.indices.contains { first in
                (first..<admissions.count)
                    .contains { last in
                        !Self.isWithin(policy, last - first + 1, inMicroseconds: admissions[last] - admissions[first])
                    }
            }
            #expect(!broken, "\(policy)")
        }
    }

    @Test("A clock step costs or grants at most one burst", arguments: 0..<40)
    func clockStep(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let policy = try RatePolicy.random(using: &generator)
        let step = Duration.seconds(seed.isMultiple(of: 2) ? 3_600 : -3_600)
        let limiter = MemoryRateLimiter.withoutJitter()
        let clock = ManualClock()
        let request = Self.request([policy])
        var admitted = 0
        var elapsed: Int64 = 0
        func run(calls: Int) async {
            for _ in 0..<calls {
                let before = clock.now().microseconds
                clock.advance(by: .random(using: &generator))
                elapsed += clock.now().microseconds - before
                admitted += await limiter.admit(request, now: clock.now()).admitted(of: 1)
            }
        }
        await run(calls: 100)
        clock.advance(by: step)
        await run(calls: 100)
        let allowed = policy.burst + Int(Int64(policy.rate) * elapsed / Int64(policy.periodSeconds) / 1_000_000)
        #expect(admitted <= allowed + (step > .zero ? policy.burst : 0))

        // After the refill time on the stepped clock, the whole burst is available.
        clock.advance(by: .seconds(policy.burst * policy.periodSeconds / policy.rate + 2))
        for _ in 0..<policy.burst {
            #expect(await limiter.admit(request, now: clock.now()).admission == .all)
        }
    }

    @Test("A client that waits for the Retry-After is not refused again in the same scope", arguments: 0..<60)
    func waitingHelps(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let policies = try LimitPolicies.random(using: &generator)
        let limiter = MemoryRateLimiter.withoutJitter()
        let clock = ManualClock()
        var denials = 0
        for call in 0..<200 {
            if call == 100 { clock.advance(by: .seconds(seed.isMultiple(of: 2) ? 3_600 : -3_600)) }
            let recipients: LimitRequest.Recipients =
                switch Int.random(in: 0..<4, using: &generator) {
                case 0...1: .devices([Self.device])
                case 2: .topics([.sample("topic")])
                default: .tenantOnly(1)
                }
            let request = LimitRequest(
                policies: policies,
                recipients: recipients,
                isCollapsible: Bool.random(using: &generator)
            )
            guard case .none(let denial) = await limiter.admit(request, now: clock.now()).admission else { continue }
            denials += 1
            clock.advance(by: .seconds(denial.retryAfter))
            let again = await limiter.admit(request, now: clock.now()).admission
            guard case .none(let next) = again else { continue }
            #expect(next.scope != denial.scope, "\(request), \(denial)")
        }
        #expect(denials > 0)
    }

    @Test("The jitter adds at most a tenth of the wait, or one second if that is more")
    func jitter() {
        for (milliseconds, range) in [(1, 1...2), (59_300, 60...66), (600_000, 600...660)]
            as [(Int64, ClosedRange<Int>)]
        {
            let wait = milliseconds * 1_000_000
            #expect(LimitDecision.Denial(.device, wait: wait, { $0.lowerBound }).retryAfter == range.lowerBound)
            #expect(LimitDecision.Denial(.device, wait: wait, { $0.upperBound }).retryAfter == range.upperBound)
        }
    }

    @Test("A list that is refused as a whole is admitted as a whole after its Retry-After", arguments: 0..<60)
    func wholeList(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let burst = Int.random(in: 3...12, using: &generator)
        let policies = LimitPolicies(
            tenant: [try .sample(.random(in: 1...9, using: &generator), per: 7, burst: burst)],
            device: [],
            deviceCollapsible: []
        )
        let limiter = MemoryRateLimiter.withoutJitter()
        let clock = ManualClock()
        let devices = (0..<burst).map { LimitKey.sample("device \($0)") }
        let request = LimitRequest(policies: policies, recipients: .devices(devices))
        #expect(await limiter.admit(request, now: clock.now()).admission == .all)
        guard case .none(let denial) = await limiter.admit(request, now: clock.now()).admission else {
            Issue.record("A used up quota refuses")
            return
        }
        clock.advance(by: .seconds(denial.retryAfter))
        #expect(await limiter.admit(request, now: clock.now()).admission == .all)
    }
}
