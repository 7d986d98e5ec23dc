import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusHistogram")
struct PrometheusHistogramTests {
    let registry = PrometheusRegistry(defaultBuckets: [0.005, 0.1, 2])

    var samples: [Substring] {
        self.registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    @Test("A value on a bound belongs to it, and buckets add up")
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

    @Test("Without bounds there is one bucket for everything")
    func withoutBounds() {
        self.registry.describe(MetricDescription(name: "h", help: "Text.", kind: .histogram, buckets: []))
        Recorder(label: "h", factory: self.registry).record(7 as Int64)
        #expect(self.samples == [#"h_bucket{le="+Inf"} 1"#, "h_sum 7", "h_count 1"])
    }

    @Test("A label named like the bucket's bound gives way to it")
    func boundLabel() {
        Recorder(label: "h", dimensions: [("le", "x")], factory: self.registry).record(1)
        #expect(self.samples.first == #"h_bucket{exported_le="x",le="0.005"} 0"#)
    }
}
