import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusRegistry")
struct PrometheusRegistryTests {
    @Test("A registry without series renders nothing, whatever was described")
    func emptyIsEmpty() {
        let registry = PrometheusRegistry(
            descriptions: [MetricDescription(name: "jobs_total", help: "Jobs.", kind: .counter)]
        )
        #expect(registry.render() == "")
    }

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

    @Test("A metric that nobody described still has a help text and the default buckets")
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

    @Test("A help text's backslashes and line feeds are escaped")
    func helpIsEscaped() {
        let registry = PrometheusRegistry()
        registry.describe(MetricDescription(name: "depth", help: #"One\two"# + "\n" + #"and "three"."#, kind: .gauge))
        Meter(label: "depth", factory: registry).set(1)
        #expect(registry.render().hasPrefix(#"# HELP depth One\\two\nand "three"."# + "\n# TYPE depth gauge\n"))
    }

    @Test("The same name and labels give the same series, in whatever order the labels come")
    func sameSeries() {
        let registry = PrometheusRegistry()
        let first = registry.makeCounter(label: "jobs.total", dimensions: [("a", "1"), ("b", "2")])
        let second = registry.makeCounter(label: "jobs_total", dimensions: [("b", "2"), ("a", "1")])
        let fractional = registry.makeFloatingPointCounter(label: "jobs", dimensions: [("a", "1"), ("b", "2")])
        #expect(first === second)
        #expect(first === fractional)
        #expect(first !== registry.makeCounter(label: "jobs_total", dimensions: [("a", "1"), ("b", "3")]))
    }

    @Test("A destroyed series is no longer rendered and starts anew")
    func destroyed() {
        let registry = PrometheusRegistry()
        let counter = Counter(label: "jobs_total", factory: registry)
        counter.increment(by: 5)
        let fractional = FloatingPointCounter(label: "spent_total", factory: registry)
        let meter = Meter(label: "level", factory: registry)
        let recorder = Recorder(label: "size_bytes", factory: registry)
        let gauge = Gauge(label: "depth", factory: registry)
        let timer = Timer(label: "wait_seconds", factory: registry)
        counter.destroy()
        fractional.destroy()
        meter.destroy()
        recorder.destroy()
        gauge.destroy()
        timer.destroy()
        #expect(registry.render() == "")

        // Nothing is left of the old type either.
        Meter(label: "wait_seconds_sum", factory: registry).set(2)
        Counter(label: "jobs_total", factory: registry).increment()
        #expect(registry.render().contains("\njobs_total 1\n"))
        #expect(registry.render().contains("\nwait_seconds_sum 2\n"))
        #expect(!registry.render().contains("clashes"))
    }

    @Test("Destroying a series leaves the others of its name")
    func destroyedOneOfTwo() {
        let registry = PrometheusRegistry()
        let first = Counter(label: "jobs_total", dimensions: [("a", "1")], factory: registry)
        let second = Counter(label: "jobs_total", dimensions: [("a", "2")], factory: registry)
        second.increment()
        first.destroy()
        first.increment()
        #expect(registry.render().hasSuffix("# TYPE jobs_total counter\njobs_total{a=\"2\"} 1\n"))
    }

    @Test("A handler of another factory can be destroyed without effect")
    func destroyForeign() {
        let registry = PrometheusRegistry()
        Counter(label: "jobs_total", factory: registry).increment()
        registry.destroyCounter(NOOPMetricsHandler.instance)
        let other = PrometheusRegistry()
        registry.destroyCounter(other.makeCounter(label: "jobs_total", dimensions: []))
        #expect(registry.render().hasSuffix("\njobs_total 1\n"))
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
        let text = registry.render()
        #expect(text.contains("\njobs_total 16000\n"))
        #expect(text.contains("\nspent_total 8000\n"))
        #expect(text.contains("\nlevel 16000\n"))
        #expect(text.contains("\nsize_bytes_bucket{le=\"1\"} 8000\n"))
        #expect(text.contains("\nsize_bytes_bucket{le=\"2\"} 12000\n"))
        #expect(text.contains("\nsize_bytes_sum 24000\n"))
        #expect(text.contains("\nsize_bytes_count 16000\n"))
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

    @Test("Bytes and text are the same")
    func bytesAndText() {
        let registry = PrometheusRegistry()
        Counter(label: "jobs_total", dimensions: [("name", "größer")], factory: registry).increment()
        #expect(registry.renderBytes() == Array(registry.render().utf8))
    }
}
