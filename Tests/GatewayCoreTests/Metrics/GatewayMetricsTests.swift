import Foundation
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("GatewayMetrics")
struct GatewayMetricsTests {
    @Test("The monitoring page lists exactly the metrics of the table, with their labels")
    func documented() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/operations/monitoring.md")
        var documented: [String: [String]] = [:]
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
        where line.hasPrefix("| `fcmgw_") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: true)
            let names = cells[0].split(separator: "`").filter { $0.hasPrefix("fcmgw_") }
            let labels = cells[1].split(separator: "`").filter { $0.allSatisfy(\.isLetter) }
            for name in names { documented[String(name)] = labels.map(String.init) }
        }
        let table = GatewayMetric.allCases.map { ($0.rawValue, $0.row.labels) }
        #expect(documented == Dictionary(uniqueKeysWithValues: table))
    }

    @Test("The names, labels and help texts of metrics follow the conventions", arguments: GatewayMetric.allCases)
    func names(metric: GatewayMetric) {
        let name = metric.rawValue
        #expect(name.hasPrefix("fcmgw_"))
        switch metric.row.kind {
        case .counter: #expect(name.hasSuffix("_total"))
        case .gauge: #expect(!name.hasSuffix("_total"))
        case .histogram(let bounds):
            #expect(name.hasSuffix("_duration_seconds"))
            #expect(bounds == bounds.sorted())
        }
        #expect(metric.row.labels.count <= 3)
        #expect(metric.row.help.hasSuffix("."))
    }

    @Test("Each member of a family is made once, in any order of requests")
    func madeOnce() {
        let made = Observed<[String: Int]>([:])
        let family = MetricFamily<String> { labels in
            made.change { $0[labels.first, default: 0] += 1 }
            return "metric \(labels.first)"
        }
        for key in ["a", "a", "b", "a", "c", "b", "b", "c", "a"] { #expect(family[key] == "metric \(key)") }
        #expect(made.current == ["a": 1, "b": 1, "c": 1])
    }

    @Test("A new member uses the labels that it is folded to, and a known member keeps its own")
    func folding() {
        let isFull = Observed(false)
        let family = MetricFamily<String>(
            folding: { isFull.current ? MetricLabels(first: "other", second: "", third: "") : $0 },
            make: { $0.first }
        )
        #expect(family["a"] == "a")
        isFull.change { $0 = true }
        for (key, member) in [("b", "other"), ("a", "a"), ("b", "other"), ("c", "other")] {
            #expect(family[key] == member)
        }
    }
}
