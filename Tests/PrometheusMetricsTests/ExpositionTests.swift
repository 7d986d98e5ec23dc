import CoreMetrics
import ProcessTestKit
import Testing

@testable import PrometheusMetrics

@Suite("ExpositionWriter")
struct ExpositionWriterTests {
    @Test(
        "Numbers are written in the exposition format",
        arguments: [
            (0, "0"), (-0.0, "0"), (1, "1"), (-3, "-3"), (0.005, "0.005"), (2.5, "2.5"), (1e-7, "1e-07"),
            (9_007_199_254_740_991, "9007199254740991"), (1e300, "1e+300"),
            (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
        ] as [(Double, String)]
    )
    func numbers(value: Double, text: String) {
        #expect(ExpositionWriter.text(value) == text)
    }
}

@Suite("SeriesIdentity")
struct SeriesIdentityTests {
    @Test(
        "Label values are escaped",
        arguments: [
            ("plain", #"l="plain""#),
            ("", #"l="""#),
            (#"back\slash"#, #"l="back\\slash""#),
            (#"quo"te"#, #"l="quo\"te""#),
            ("line\nfeed", #"l="line\nfeed""#),
            ("return\r\nfeed", "l=\"return\r\\nfeed\""),
            (#"\n"#, #"l="\\n""#),
            ("{},= ü 😀", #"l="{},= ü 😀""#),
        ]
    )
    func escaping(value: String, rendered: String) {
        let identity = SeriesIdentity(name: "m", dimensions: [("l", value)], kind: .gauge)
        #expect(identity.labels == rendered)
    }

    @Test("Labels are sorted by name, and names that become equal are detected")
    func names() {
        let sorted = SeriesIdentity(name: "m", dimensions: [("b", "1"), ("a", "2")], kind: .gauge)
        #expect(sorted.labels == #"a="2",b="1""#)
        #expect(sorted.labelNames == ["a", "b"])
        #expect(!sorted.hasDuplicateLabels)
        let same = SeriesIdentity(name: "m", dimensions: [("a-b", "1"), ("c", "2"), ("a_b", "3")], kind: .gauge)
        #expect(same.hasDuplicateLabels)
    }
}

@Suite("MetricName")
struct MetricNameTests {
    @Test(
        "Metric names are made valid",
        arguments: [
            ("jobs_total", MetricDescription.Kind.counter, "jobs_total"),
            ("jobs", .counter, "jobs_total"),
            ("http.server.requests", .counter, "http_server_requests_total"),
            ("http.server-duration", .histogram, "http_server_duration"),
            ("job:rate", .gauge, "job_rate"),
            ("2xx", .gauge, "_2xx"),
            ("größe", .gauge, "gr__e"),
            ("", .gauge, "_"),
            ("x2", .gauge, "x2"),
        ]
    )
    func metric(name: String, kind: MetricDescription.Kind, valid: String) {
        #expect(MetricName.valid(name, kind: kind) == valid)
    }

    @Test(
        "Label names are made valid",
        arguments: [
            ("status", MetricDescription.Kind.gauge, "status"),
            ("http.status", .gauge, "http_status"),
            ("__name__", .gauge, "_name__"),
            ("0", .gauge, "_0"),
            ("", .gauge, "_"),
            ("le", .gauge, "le"),
            ("le", .histogram, "exported_le"),
        ]
    )
    func label(name: String, kind: MetricDescription.Kind, valid: String) {
        #expect(MetricName.validLabel(name, kind: kind) == valid)
    }
}

/// Checks a registry's output with Prometheus' own tool.
@Suite("promtool")
struct PromtoolTests {
    static let promtool = Program.named("promtool")

    @Test("promtool accepts output without warnings", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func clean() async throws {
        let help = "Jobs \\ done,\nby \"result\"."
        let registry = PrometheusRegistry(
            descriptions: [MetricDescription(name: "jobs_total", help: help, kind: .counter)],
            processMetrics: ProcessMetrics()
        )
        for value in ["ok", #"a\b"#, "c\"d", "e\nf", "", "ü😀"] {
            Counter(label: "jobs_total", dimensions: [("result", value)], factory: registry).increment()
        }
        FloatingPointCounter(label: "library.work", factory: registry).increment(by: 0.1)
        Meter(label: "level", factory: registry).set(-Double.infinity)
        Meter(label: "other:level", factory: registry).set(Double.nan)
        Timer(label: "wait_seconds", dimensions: [("le", "x")], factory: registry).recordNanoseconds(1)
        Recorder(label: "2.size_bytes", factory: registry).record(1e20)
        // A clash adds its counter to the output.
        Meter(label: "wait_seconds_sum", factory: registry).set(1)
        let outcome = try await self.check(registry.render())
        #expect(outcome.end == .code(0))
        #expect(outcome.output + outcome.errors == "")
    }

    @Test("promtool refuses malformed output", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func objects() async throws {
        let outcome = try await self.check("# TYPE a counter\na{b=\"c\"d\"} 1\n")
        #expect(outcome.end == .code(1))
    }

    private func check(_ text: String) async throws -> Program.Outcome {
        try await Program.run(#require(Self.promtool), ["check", "metrics"], input: text)
    }
}
