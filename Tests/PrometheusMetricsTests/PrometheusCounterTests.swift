import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusCounter")
struct PrometheusCounterTests {
    let registry = PrometheusRegistry()

    var value: Substring? {
        self.registry.render().split(separator: "\n").last?.split(separator: " ").last
    }

    @Test("Whole and fractional amounts are summed")
    func sums() {
        Counter(label: "c", factory: self.registry).increment(by: 3)
        #expect(self.value == "3")
        FloatingPointCounter(label: "c", factory: self.registry).increment(by: 0.25)
        #expect(self.value == "3.25")
    }

    @Test("Whole amounts stay exact where a Double would not")
    func exact() {
        let counter = Counter(label: "c", factory: self.registry)
        counter.increment(by: 9_007_199_254_740_993 as Int64)
        #expect(self.value == "9007199254740993")
    }

    @Test("Amounts below zero and not finite are ignored", arguments: [-1, -.infinity, .infinity, .nan] as [Double])
    func ignored(amount: Double) {
        let counter = self.registry.makeFloatingPointCounter(label: "c", dimensions: [])
        counter.increment(by: 1.5)
        counter.increment(by: amount)
        self.registry.makeCounter(label: "c", dimensions: []).increment(by: -1)
        #expect(self.value == "1.5")
    }

    @Test("A reset counter starts at zero")
    func reset() {
        let counter = Counter(label: "c", factory: self.registry)
        counter.increment(by: 3)
        FloatingPointCounter(label: "c", factory: self.registry).increment(by: 0.25)
        counter.reset()
        #expect(self.value == "0")
    }
}
