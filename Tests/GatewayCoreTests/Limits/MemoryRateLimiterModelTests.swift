import GatewayCore
import GatewayTestKit
import Testing

@Suite("MemoryRateLimiter against a model")
struct MemoryRateLimiterModelTests {
    @Test("Every decision, wait and quota is the model's", arguments: 0..<60)
    func agreesWithModel(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let policies = try LimitPolicies.random(using: &generator)
        let limiter = MemoryRateLimiter()
        let clock = ManualClock()
        var model = LimiterModel()
        var admissions = (all: 0, some: 0, none: 0)
        for step in 0..<400 {
            clock.advance(by: .random(using: &generator))
            let request = Self.request(policies, using: &generator)
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

    private static func request(
        _ policies: LimitPolicies,
        using generator: inout SeededGenerator
    ) -> LimitRequest {
        func keys(_ kind: String, atMost count: Int) -> [LimitKey] {
            (0..<Int.random(in: 1...count, using: &generator))
                .map { _ in LimitKey.sample("\(kind) \(Int.random(in: 0..<4, using: &generator))") }
        }
        let recipients: LimitRequest.Recipients =
            switch Int.random(in: 0..<8, using: &generator) {
            case 0...4: .devices(keys("device", atMost: 6))
            case 5...6: .topics(Array(Set(keys("topic", atMost: 3))))
            default: .tenantOnly(Int.random(in: 1...4, using: &generator))
            }
        return LimitRequest(
            tenant: .sample("tenant \(Int.random(in: 0..<2, using: &generator))"),
            policies: policies,
            recipients: recipients,
            isCollapsible: Bool.random(using: &generator)
        )
    }
}
