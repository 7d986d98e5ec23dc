import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusCounter")
struct PrometheusCounterTests {
    let registry = PrometheusRegistry()

    var value: Substring? {
        self.registry.render().split(separator: "\n").last?.split(separator: " ").last
    }

    @Test("A fractional counter shows whole amounts only")
    func fractions() {
        let counter = FloatingPointCounter(label: "c", factory: self.registry)
        for value in ["0", "0", "0", "1"] {
            counter.increment(by: 0.25)
            #expect(self.value.map(String.init) == value)
        }
    }

    @Test("Amounts above the precision of Double are exact, negative ones ignored, and reset sets zero")
    func amounts() {
        let counter = self.registry.makeCounter(label: "c", dimensions: [])
        counter.increment(by: 9_007_199_254_740_993)
        counter.increment(by: -1)
        #expect(self.value == "9007199254740993")
        counter.reset()
        #expect(self.value == "0")
    }
}

@Suite("PrometheusGauge")
struct PrometheusGaugeTests {
    @Test("A gauge is set, raised and lowered, by meter and by recorder")
    func moves() {
        let registry = PrometheusRegistry()
        let meter = Meter(label: "level", factory: registry)
        meter.set(10)
        meter.increment(by: 2.5)
        meter.decrement(by: 20)
        #expect(registry.render().hasSuffix("\nlevel -7.5\n"))
        Gauge(label: "level", factory: registry).record(4)
        #expect(registry.render().hasSuffix("\nlevel 4\n"))
        meter.set(0.125)
        #expect(registry.render().hasSuffix("\nlevel 0.125\n"))
    }
}

@Suite("PrometheusHistogram")
struct PrometheusHistogramTests {
    let registry = PrometheusRegistry(defaultBuckets: [0.005, 0.1, 2])

    var samples: [Substring] {
        self.registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    @Test("A value on a bound counts in its bucket, and buckets are cumulative")
    func cumulative() {
        let timer = Timer(label: "h", factory: self.registry)
        timer.recordNanoseconds(5_000_000)
        timer.recordNanoseconds(5_000_001)
        timer.recordNanoseconds(100_000_000)
        timer.recordNanoseconds(2_000_000_000)
        timer.recordNanoseconds(3_000_000_000)
        #expect(self.samples.dropLast(2).last == #"h_bucket{le="+Inf"} 5"#)
        #expect(
            self.samples.prefix(3) == [#"h_bucket{le="0.005"} 1"#, #"h_bucket{le="0.1"} 3"#, #"h_bucket{le="2"} 4"#]
        )
        #expect(self.samples.last == "h_count 5")
    }

    @Test("A duration below zero counts as zero")
    func negativeDuration() {
        Timer(label: "h", factory: self.registry).recordNanoseconds(-5)
        #expect(self.samples.first == #"h_bucket{le="0.005"} 1"#)
        #expect(self.samples.suffix(2) == ["h_sum 0", "h_count 1"])
    }

    @Test("A value that is not finite is ignored", arguments: [Double.nan, .infinity, -.infinity])
    func notFinite(value: Double) {
        let recorder = Recorder(label: "h", factory: self.registry)
        recorder.record(0.5)
        recorder.record(value)
        #expect(self.samples.suffix(2) == ["h_sum 0.5", "h_count 1"])
    }

    @Test("Without bounds, the only bucket is +Inf")
    func withoutBounds() {
        let registry = PrometheusRegistry()
        Recorder(label: "h", factory: registry).record(7 as Int64)
        let samples = registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(samples == [#"h_bucket{le="+Inf"} 1"#, "h_sum 7", "h_count 1"])
    }

    @Test("A histogram's label le is renamed to exported_le")
    func boundLabel() {
        Recorder(label: "h", dimensions: [("le", "x")], factory: self.registry).record(1)
        #expect(self.samples.first == #"h_bucket{exported_le="x",le="0.005"} 0"#)
    }
}
