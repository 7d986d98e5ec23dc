import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("Metrics of the limiter")
struct LimiterMetricsTests {
    @Test("Every decision is counted; the first is timed, and then every 16th")
    func samples() async throws {
        let factory = TestMetrics()
        let limiter = MemoryRateLimiter(metrics: GatewayMetrics(factory: factory))
        let timer = try factory.expectTimer("fcmgw_limiter_duration_seconds", [("source", "memory")])
        var samples: [Int] = []
        for index in 0..<34 {
            let request = LimitRequest(
                tenant: .sample("tenant"),
                policies: LimitPolicies(),
                recipients: .devices([.sample("device \(index)")]),
                isCollapsible: false
            )
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
