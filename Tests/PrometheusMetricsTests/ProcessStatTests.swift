import Testing

@testable import PrometheusMetrics

@Suite("ProcessStat")
struct ProcessStatTests {
    @Test("Fields are counted from behind a program name with spaces and parentheses")
    func fields() throws {
        let line = """
            4242 (od) d (name) S 1 4242 4242 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 3 0 77700 104857600 2560 \
            18446744073709551615 1 1 0 0 0 0 0 4096 17642 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0

            """
        let stat = try #require(ProcessStat(line: line))
        #expect(stat.cpuTicks == 175)
        #expect(stat.startTicks == 77_700)
        #expect(stat.virtualBytes == 104_857_600)
        #expect(stat.residentPages == 2_560)
    }

    @Test("A line that is too short or not made of numbers is refused", arguments: ["", "1 (a", "1 (a) S 1 2 3"])
    func refused(line: String) {
        #expect(ProcessStat(line: line) == nil)
    }

    @Test("The time of boot stands on a line of its own")
    func bootTime() {
        #expect(ProcessStat.bootTimeSeconds(stat: "cpu 1 2\nctxt 5\nbtime 1700000000\n") == 1_700_000_000)
        #expect(ProcessStat.bootTimeSeconds(stat: "cpu 1 2\n") == nil)
    }
}
