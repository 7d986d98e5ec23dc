import CoreMetrics
import Foundation
import Testing

@testable import PrometheusMetrics

/// Prometheus' own opinion of what a registry renders.
@Suite("promtool")
struct PromtoolTests {
    /// Where promtool is, if it is installed.
    static let promtool: URL? = (ProcessInfo.processInfo.environment["PATH"] ?? "")
        .split(separator: ":")
        .map { URL(fileURLWithPath: String($0)).appendingPathComponent("promtool") }
        .first { FileManager.default.isExecutableFile(atPath: $0.path) }

    @Test("promtool has nothing to say", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func clean() throws {
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
        let result = try self.check(registry.render())
        #expect(result == Result(status: 0, output: ""))
    }

    @Test("promtool would object", .enabled(if: Self.promtool != nil, "promtool is not installed"))
    func objects() throws {
        #expect(try self.check("# TYPE a counter\na{b=\"c\"d\"} 1\n").status != 0)
    }

    private struct Result: Equatable {
        let status: Int32
        let output: String
    }

    private func check(_ text: String) throws -> Result {
        let process = Process()
        process.executableURL = Self.promtool
        process.arguments = ["check", "metrics"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
        // Less than a pipe holds, so that it can be written before anything is read.
        try #require(text.utf8.count < 65_536)
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try input.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Result(status: process.terminationStatus, output: String(decoding: data, as: UTF8.self))
    }
}
