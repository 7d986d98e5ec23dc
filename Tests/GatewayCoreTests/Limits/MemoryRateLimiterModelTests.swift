import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("MemoryRateLimiter against a model")
struct MemoryRateLimiterModelTests {
    @Test("Every decision, wait and quota is the model's", arguments: 0..<60)
    func agreesWithModel(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let policies = try LimitPolicies.random(using: &generator)
        let limiter = MemoryRateLimiter.withoutJitter()
        let clock = ManualClock()
        var model = LimiterModel()
        var admissions = (all: 0, some: 0, none: 0)
        for step in 0..<400 {
            clock.advance(by: .random(using: &generator))
            let request = LimitRequest.random(policies, using: &generator)
            let decision = await limiter.admit(request, now: clock.now())
            let expected = model.admit(request, now: clock.now())
            #expect(decision.admission == expected.admission, "step \(step): \(request)")
            #expect(decision.tenantQuotas == expected.tenantQuotas, "step \(step): \(request)")
            guard decision.admission == expected.admission else { return }
            switch decision.admission {
            case .all: admissions.all += 1
            case .some: admissions.some += 1
            case .none: admissions.none += 1
            }
        }
        // A sequence that only ever met one answer would prove little.
        #expect(admissions.all > 0 && admissions.none > 0, "\(admissions)")
    }
}
