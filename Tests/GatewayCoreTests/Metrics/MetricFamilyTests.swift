import GatewayTestKit
import Testing

@testable import GatewayCore

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

    @Test("Beyond the room of all tenants, what is new is measured with what they share, and what is known stays")
    func room() {
        let labels = TenantLabels()
        var first = MetricFamily<Int, Int> { $0 }
        let second = MetricFamily<Int, Int> { $0 }
        for key in 1...TenantLabels.maxSeries { #expect(first.member(of: key, in: labels, else: 0) == key) }
        for family in 0..<2 {
            for _ in 0..<2 {
                let key = TenantLabels.maxSeries + 1
                #expect((family == 0 ? first : second).peek(key, labels) == 0)
            }
        }
        for key in [1, TenantLabels.maxSeries, 0] { #expect(first.member(of: key, in: labels, else: 0) == key) }
    }

    @Test("What tenants share takes no room from them")
    func sharedIsFree() {
        let labels = TenantLabels()
        var family = MetricFamily<Int, Int> { $0 }
        for key in -2_000..<0 { #expect(family.member(of: key, in: labels, else: key) == key) }
        #expect(family.member(of: 1, in: labels, else: 0) == 1)
    }
}

extension MetricFamily {
    /// The member of a tenant's key, of a copy.
    fileprivate func peek(_ key: Key, _ labels: TenantLabels) -> Metric where Key == Int {
        var copy = self
        return copy.member(of: key, in: labels, else: 0)
    }
}
