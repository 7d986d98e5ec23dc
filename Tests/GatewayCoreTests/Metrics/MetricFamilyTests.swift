import GatewayCore
import GatewayTestKit
import Testing

@Suite("MetricFamily")
struct MetricFamilyTests {
    @Test("Each member is made once, whatever was asked for last")
    func madeOnce() {
        let made = Observed<[Int: Int]>([:])
        var family = MetricFamily<Int, String> { key in
            made.change { $0[key, default: 0] += 1 }
            return "metric \(key)"
        }
        for key in [0, 0, 1, 0, 2, 1, 1, 2, 0] { #expect(family.member(of: key) == "metric \(key)") }
        #expect(made.current == [0: 1, 1: 1, 2: 1])
    }
}
