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

    @Test("The process metrics are plausible")
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
        // The tolerance is a second, since the boot time is given in whole seconds.
        #expect(uptime > -1 && uptime < 86_400)
    }

    @Test("Processor time grows with work")
    func processorTime() throws {
        let before = try #require(self.values()["process_cpu_seconds_total"])
        var after = before
        // The readings themselves use processor time, more than a clock tick in total.
        for _ in 0..<10_000 where after == before {
            after = try #require(self.values()["process_cpu_seconds_total"])
        }
        #expect(after > before)
    }

    @Test("Process metrics are sorted by name among the registry's metrics")
    func amongOthers() {
        let registry = PrometheusRegistry(processMetrics: ProcessMetrics())
        Meter(label: "queue_depth", factory: registry).set(1)
        Meter(label: "active", factory: registry).set(1)
        let lines = registry.render().split(separator: "\n").filter { !$0.hasPrefix("#") }
        let names = lines.map { $0.prefix { $0 != " " } }
        #expect(
            names == [
                "active", "process_cpu_seconds_total", "process_max_fds", "process_open_fds",
                "process_resident_memory_bytes", "process_start_time_seconds", "process_virtual_memory_bytes",
                "queue_depth",
            ]
        )
    }

    @Test("A registered metric replaces the process metric of the same name")
    func ownMetric() {
        let registry = PrometheusRegistry(processMetrics: ProcessMetrics())
        Meter(label: "process_open_fds", factory: registry).set(-1)
        let lines = registry.render().split(separator: "\n").filter { $0.hasPrefix("process_open_fds") }
        #expect(lines == ["process_open_fds -1"])
    }
}
#endif

@Suite("ProcessMetrics.Stat")
struct ProcessStatTests {
    @Test("Fields are counted after a program name with spaces and parentheses")
    func fields() throws {
        let line = """
            4242 (od) d (name) S 1 4242 4242 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 3 0 77700 104857600 2560 \
            18446744073709551615 1 1 0 0 0 0 0 4096 17642 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0

            """
        let stat = try #require(ProcessMetrics.Stat(line: line))
        #expect(stat.cpuTicks == 175)
        #expect(stat.startTicks == 77_700)
        #expect(stat.virtualBytes == 104_857_600)
        #expect(stat.residentPages == 2_560)
    }

    @Test("A line with too few fields is refused", arguments: ["", "1 (a", "1 (a) S 1 2 3"])
    func refused(line: String) {
        #expect(ProcessMetrics.Stat(line: line) == nil)
    }

    @Test("The boot time is read from the btime line")
    func bootTime() {
        #expect(ProcessMetrics.Stat.bootTimeSeconds(stat: "cpu 1 2\nctxt 5\nbtime 1700000000\n") == 1_700_000_000)
        #expect(ProcessMetrics.Stat.bootTimeSeconds(stat: "cpu 1 2\n") == nil)
    }
}

#if os(Linux)
@Suite("ProcessMetrics.File")
struct ProcessFileTests {
    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    @Test("A file is read to its end", arguments: [0, 1, 16_384, 50_000])
    func wholeFile(size: Int) throws {
        try self.withFolder { folder in
            let file = folder.appendingPathComponent("file")
            let text = String((0..<size).map { _ in Character(["a", "b", "c"].randomElement() ?? "d") })
            try Data(text.utf8).write(to: file)
            #expect(ProcessMetrics.File.text(of: file.path) == text)
        }
    }

    @Test("A folder's entries are counted", arguments: [0, 1, 300])
    func entries(count: Int) throws {
        try self.withFolder { folder in
            for index in 0..<count {
                try Data().write(to: folder.appendingPathComponent("\(index)"))
            }
            #expect(ProcessMetrics.File.entryCount(of: folder.path) == count)
        }
    }

    @Test("A missing file or folder gives nil, and so does the text of a folder")
    func missing() throws {
        try self.withFolder { folder in
            #expect(ProcessMetrics.File.text(of: folder.appendingPathComponent("none").path) == nil)
            #expect(ProcessMetrics.File.text(of: folder.path) == nil)
            #expect(ProcessMetrics.File.entryCount(of: folder.appendingPathComponent("none").path) == nil)
        }
    }
}
#endif
