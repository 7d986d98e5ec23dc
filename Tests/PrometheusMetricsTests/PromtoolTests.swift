import CoreMetrics
import ProcessTestKit
import Testing

@testable import PrometheusMetrics

/// Prometheus' own opinion of what a registry renders.
@Suite("promtool")
struct PromtoolTests {
    static let promtool = Program.named("promtool")

    @Test("promtool has nothing to say", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func clean() async throws {
        let registry = PrometheusRegistry(processMetrics: ProcessMetrics())
        registry.describe(MetricDescription(name: "jobs_total", help: "Jobs \\ done,\nby \"result\".", kind: .counter))
        for value in ["ok", #"a\b"#, "c\"d", "e\nf", "", "ü😀"] {
            Counter(label: "jobs_total", dimensions: [("result", value)], factory: registry).increment()
        }
        FloatingPointCounter(label: "library.work", factory: registry).increment(by: 0.1)
        Meter(label: "level", factory: registry).set(-Double.infinity)
        Meter(label: "other:level", factory: registry).set(Double.nan)
        Timer(label: "wait_seconds", dimensions: [("le", "x")], factory: registry).recordNanoseconds(1)
        Recorder(label: "2.size_bytes", factory: registry).record(1e20)
        // A clash, so that its counter is there too.
        Meter(label: "wait_seconds_sum", factory: registry).set(1)
        let outcome = try await self.check(registry.render())
        #expect(outcome.end == .code(0))
        #expect(outcome.output + outcome.errors == "")
    }

    @Test("promtool would object", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func objects() async throws {
        let outcome = try await self.check("# TYPE a counter\na{b=\"c\"d\"} 1\n")
        #expect(outcome.end == .code(1))
    }

    private func check(_ text: String) async throws -> Program.Outcome {
        try await Program.run(#require(Self.promtool), ["check", "metrics"], input: text)
    }
}
