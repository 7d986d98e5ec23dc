import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusRegistry")
struct PrometheusRegistryTests {
    @Test("Counters, gauges and histograms render in the order of names and labels")
    func rendersAllKinds() {
        let registry = PrometheusRegistry(descriptions: [
            MetricDescription(name: "wait_seconds", help: "Time waited.", kind: .histogram, buckets: [0.25, 1]),
            MetricDescription(name: "jobs_total", help: "Jobs done.", kind: .counter),
            MetricDescription(name: "depth", help: "Jobs waiting.", kind: .gauge),
        ])
        let wait = Timer(label: "wait_seconds", dimensions: [("queue", "a")], factory: registry)
        wait.recordNanoseconds(250_000_000)
        wait.recordNanoseconds(500_000_000)
        wait.recordNanoseconds(2_000_000_000)
        Counter(label: "jobs_total", dimensions: [("result", "ok")], factory: registry).increment(by: 3)
        Counter(label: "jobs_total", dimensions: [("result", "failed")], factory: registry).increment()
        Gauge(label: "depth", factory: registry).record(7.5)

        #expect(
            registry.render() == """
                # HELP depth Jobs waiting.
                # TYPE depth gauge
                depth 7.5
                # HELP jobs_total Jobs done.
                # TYPE jobs_total counter
                jobs_total{result="failed"} 1
                jobs_total{result="ok"} 3
                # HELP wait_seconds Time waited.
                # TYPE wait_seconds histogram
                wait_seconds_bucket{queue="a",le="0.25"} 1
                wait_seconds_bucket{queue="a",le="1"} 2
                wait_seconds_bucket{queue="a",le="+Inf"} 3
                wait_seconds_sum{queue="a"} 2.75
                wait_seconds_count{queue="a"} 3

                """
        )
    }

    @Test("An undescribed metric has a default help text and the default buckets")
    func undescribed() {
        let registry = PrometheusRegistry(defaultBuckets: [5, 1, 5, .infinity])
        Recorder(label: "size_bytes", factory: registry).record(3)
        #expect(
            registry.render() == """
                # HELP size_bytes Not described.
                # TYPE size_bytes histogram
                size_bytes_bucket{le="1"} 0
                size_bytes_bucket{le="5"} 1
                size_bytes_bucket{le="+Inf"} 1
                size_bytes_sum 3
                size_bytes_count 1

                """
        )
    }

    @Test("A help text is escaped, and a name without series is not rendered")
    func helpIsEscaped() {
        let help = #"One\two"# + "\n" + #"and "three"."#
        let registry = PrometheusRegistry(
            descriptions: [MetricDescription(name: "depth", help: help, kind: .gauge)]
        )
        #expect(registry.render() == "")
        Meter(label: "depth", factory: registry).set(1)
        #expect(registry.render().hasPrefix(#"# HELP depth One\\two\nand "three"."# + "\n# TYPE depth gauge\n"))
    }

    @Test("The same name and labels give the same series, in any order of labels")
    func sameSeries() {
        let registry = PrometheusRegistry()
        let first = registry.makeCounter(label: "jobs.total", dimensions: [("a", "1"), ("b", "2")])
        let second = registry.makeCounter(label: "jobs_total", dimensions: [("b", "2"), ("a", "1")])
        #expect(first === second)
        #expect(first === registry.makeCounter(label: "jobs", dimensions: [("a", "1"), ("b", "2")]))
        #expect(first !== registry.makeCounter(label: "jobs_total", dimensions: [("a", "1"), ("b", "3")]))
    }

    @Test("A series stays when its handle is destroyed")
    func destroyed() {
        let registry = PrometheusRegistry()
        let counter = Counter(label: "jobs_total", factory: registry)
        counter.increment(by: 5)
        counter.destroy()
        #expect(registry.render().contains("\njobs_total 5\n"))
    }

    @Test("Increments from many tasks at once are all counted")
    func concurrentIncrements() async {
        let registry = PrometheusRegistry(defaultBuckets: [1, 2])
        await withTaskGroup { group in
            for task in 0..<16 {
                group.addTask {
                    let counter = Counter(label: "jobs_total", factory: registry)
                    let fractional = FloatingPointCounter(label: "spent_total", factory: registry)
                    let meter = Meter(label: "level", factory: registry)
                    let recorder = Recorder(label: "size_bytes", factory: registry)
                    for _ in 0..<1_000 {
                        counter.increment()
                        fractional.increment(by: 0.5)
                        meter.increment(by: 2)
                        meter.decrement(by: 1)
                        recorder.record(task % 4)
                    }
                }
            }
        }
        #expect(
            registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") } == [
                "jobs_total 16000", "level 16000", #"size_bytes_bucket{le="1"} 8000"#,
                #"size_bytes_bucket{le="2"} 12000"#, #"size_bytes_bucket{le="+Inf"} 16000"#, "size_bytes_sum 24000",
                "size_bytes_count 16000", "spent_total 8000",
            ]
        )
    }

    @Test("Five thousand series render completely, each once")
    func manySeries() {
        let registry = PrometheusRegistry()
        for index in 0..<5_000 {
            let labels = [("tenant", "t\(index % 200)"), ("outcome", "o\(index / 200)")]
            Counter(label: "messages_total", dimensions: labels, factory: registry).increment(by: index)
        }
        let lines = registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(lines.count == 5_000)
        #expect(Set(lines).count == 5_000)
        #expect(lines == lines.sorted())
        #expect(lines.contains("messages_total{outcome=\"o24\",tenant=\"t199\"} 4999"))
    }
}

@Suite("RegistrationClash")
struct RegistrationClashTests {
    /// A second use of a name, after a histogram `wait_seconds` with the label `queue` and a gauge `size_count`.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let reason: String
        let record: @Sendable (PrometheusRegistry) -> Void
    }

    static let cases: [Case] = [
        Case(testDescription: "another type", reason: "type") {
            Meter(label: "wait_seconds", dimensions: [("queue", "a")], factory: $0).set(1)
        },
        Case(testDescription: "another type than described", reason: "type") {
            Meter(label: "described", factory: $0).set(1)
        },
        Case(testDescription: "other label names", reason: "labels") {
            Timer(label: "wait_seconds", dimensions: [("kind", "a")], factory: $0).recordNanoseconds(1)
        },
        Case(testDescription: "no labels", reason: "labels") {
            Timer(label: "wait_seconds", factory: $0).recordNanoseconds(1)
        },
        Case(testDescription: "two labels of one name", reason: "labels") {
            Counter(label: "other_total", dimensions: [("a.b", "1"), ("a_b", "2")], factory: $0).increment()
        },
        Case(testDescription: "the name of a histogram's sample", reason: "name") {
            Meter(label: "wait_seconds_count", factory: $0).set(1)
        },
        Case(testDescription: "a histogram whose sample has another's name", reason: "name") {
            Recorder(label: "size", factory: $0).record(1)
        },
    ]

    @Test("A clashing metric does not change the output and is counted", arguments: Self.cases)
    func clash(example: Case) {
        let registry = PrometheusRegistry(
            descriptions: [MetricDescription(name: "described", help: "Text.", kind: .histogram)],
            defaultBuckets: [1]
        )
        Timer(label: "wait_seconds", dimensions: [("queue", "a")], factory: registry).recordNanoseconds(1)
        Meter(label: "size_count", factory: registry).set(4)
        let before = registry.render()

        example.record(registry)
        example.record(registry)

        let text = registry.render()
        let counted = "metrics_registration_clashes_total{reason=\"\(example.reason)\"} 2\n"
        #expect(text.contains(counted))
        let rest = text.split(separator: "\n").filter { !$0.contains("metrics_registration_clashes_total") }
        #expect(rest == before.split(separator: "\n"))
    }

    @Test("The clash counter's own name can clash too")
    func counterTaken() {
        let registry = PrometheusRegistry()
        Counter(label: "metrics_registration_clashes_total", dimensions: [("mine", "1")], factory: registry)
            .increment(by: 9)
        Meter(label: "level", factory: registry).set(1)
        Counter(label: "level", factory: registry).increment()
        Timer(label: "level", factory: registry).recordNanoseconds(1)
        let text = registry.render()
        #expect(text.contains("\nmetrics_registration_clashes_total{mine=\"1\"} 9\n"))
        #expect(text.contains("\nlevel 1\n"))
        #expect(text.contains("\nlevel_total 1\n"))
        #expect(!text.contains("reason"))
    }
}
