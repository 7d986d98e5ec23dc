import GatewayCore
import GatewayTestKit
import Testing

@Suite("MetricFamily")
struct MetricFamilyTests {
    @Test("Each member is made once, however many ask at once")
    func madeOnce() async {
        let made = Observed<[Int: Int]>([:])
        let family = MetricFamily<Int, String> { key in
            made.change { $0[key, default: 0] += 1 }
            return "metric \(key)"
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    for key in 0..<20 { #expect(family[key] == "metric \(key)") }
                }
            }
        }
        #expect(made.current == Dictionary(uniqueKeysWithValues: (0..<20).map { ($0, 1) }))
    }
}
