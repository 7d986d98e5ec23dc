import CoreMetrics
import Foundation
import Testing

@testable import PrometheusMetrics

#if os(Linux)
@Suite("ProcessMetrics")
struct ProcessMetricsTests {
    private func values() -> [String: Double] {
        Dictionary(uniqueKeysWithValues: ProcessMetrics().samples().map { ($0.description.name, $0.value) })
    }

    @Test("The process's numbers are plausible")
    func plausible() throws {
        let values = self.values()
        #expect(values.count == 6)
        let resident = try #require(values["process_resident_memory_bytes"])
        #expect(resident > 1_048_576)
        #expect(try #require(values["process_virtual_memory_bytes"]) > resident)
        // Standard input, output and errors at least.
        let openFiles = try #require(values["process_open_fds"])
        #expect(openFiles >= 3)
        #expect(try #require(values["process_max_fds"]) >= openFiles)
        let start = try #require(values["process_start_time_seconds"])
        let uptime = Date().timeIntervalSince1970 - start
        // A second's tolerance: the time of boot is given in whole seconds.
        #expect(uptime > -1 && uptime < 86_400)
    }

    @Test("Processor time grows with work")
    func processorTime() throws {
        let before = try #require(self.values()["process_cpu_seconds_total"])
        var after = before
        // Each reading is work itself; a clock tick's worth is done long before the last.
        for _ in 0..<10_000 where after == before {
            after = try #require(self.values()["process_cpu_seconds_total"])
        }
        #expect(after > before)
    }

    @Test("They stand among the registry's metrics in the order of names")
    func amongOthers() {
        let registry = PrometheusRegistry(processMetrics: ProcessMetrics())
        Meter(label: "queue_depth", factory: registry).set(1)
        Meter(label: "active", factory: registry).set(1)
        let names = registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map {
                $0.prefix { $0 != " " }
            }
        #expect(
            names == [
                "active", "process_cpu_seconds_total", "process_max_fds", "process_open_fds",
                "process_resident_memory_bytes", "process_start_time_seconds", "process_virtual_memory_bytes",
                "queue_depth",
            ]
        )
    }

    @Test("A metric of the program's own under the same name is the one shown")
    func ownMetric() {
        let registry = PrometheusRegistry(processMetrics: ProcessMetrics())
        Meter(label: "process_open_fds", factory: registry).set(-1)
        let lines = registry.render().split(separator: "\n").filter { $0.hasPrefix("process_open_fds") }
        #expect(lines == ["process_open_fds -1"])
    }
}
#endif
