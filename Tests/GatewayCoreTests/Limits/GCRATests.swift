import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("GCRA")
struct GCRATests {
    @Test("The slowest and the largest policies stay within 64 bits")
    func extremes() throws {
        let now: Int64 = 1 << 61
        for (rate, period, burst) in [(1, 86_400, 30), (1_000_000_000, 1, 1_000_000_000), (1, 1, 2_592_000)] {
            let gcra = GCRA(try RatePolicy.sample(rate, per: period, burst: burst))
            #expect(gcra.available(0, at: now) == burst)
            let empty = gcra.charged(0, burst, at: now)
            #expect(gcra.available(empty, at: now) == 0)
            #expect(gcra.refunded(empty, burst) == now)
        }
    }
}
