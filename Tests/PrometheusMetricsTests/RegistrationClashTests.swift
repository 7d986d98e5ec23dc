import CoreMetrics
import Testing

@testable import PrometheusMetrics

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

    @Test("A clash records without effect on the output, and is counted", arguments: Self.cases)
    func clash(example: Case) {
        let registry = PrometheusRegistry(defaultBuckets: [1])
        registry.describe(MetricDescription(name: "described", help: "Text.", kind: .histogram))
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
