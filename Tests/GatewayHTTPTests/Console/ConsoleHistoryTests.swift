import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct ConsoleHistoryTests {
    private let text = Observed("")
    private let start = Uptime.now

    private func history() -> ConsoleHistory {
        let text = self.text
        return ConsoleHistory(MetricsExposition(contentType: "text/plain") { Array(text.current.utf8) })
    }

    private func messages(_ tenant: String, accepted: Int, rejected: Int) -> String {
        """
        fcmgw_messages_total{kind="token",outcome="accepted",tenant="\(tenant)"} \(accepted)
        fcmgw_messages_total{kind="token",outcome="unregistered",tenant="\(tenant)"} \(rejected)

        """
    }

    @Test("A reading has the samples of the metrics that are asked for, with their labels unescaped")
    func reading() {
        let text = """
            # HELP a {x="1"} 9
            # TYPE a counter
            a{one="x\\"y\\\\z\\n,}",two=""} 3
            a{one="p"} 4.5
            ab 7
            b +Inf
            c
            d{} NaN

            """
        let reading = MetricsReading(text, names: ["a", "b", "c"])
        #expect(reading["a"].map(\.value) == [3, 4.5])
        #expect(reading["a"].first?.labels == ["one": "x\"y\\z\n,}", "two": ""])
        #expect(reading.value("a") == 7.5 && reading.value("b") == .infinity)
        #expect(reading.value("ab") == nil && reading.value("c") == nil)
        #expect(reading.sums("a", by: "one") == ["x\"y\\z\n,}": 3, "p": 4.5])
    }

    @Test("A minute has the recipients since the one before it, of one tenant and of all")
    func minutes() {
        let history = self.history()
        #expect(history.earlier(than: self.start) == nil)
        self.text.change { $0 = self.messages("a", accepted: 100, rejected: 10) }
        history.read(at: self.start)
        // What came before the first reading is of no minute.
        #expect(history.minutes(of: "a").isEmpty)
        self.text.change {
            $0 = self.messages("a", accepted: 103, rejected: 10) + self.messages("b", accepted: 5, rejected: 1)
        }
        for _ in 0..<2 { history.read(at: self.start) }
        #expect(history.minutes(of: "a") == [.init(accepted: 3), .init()])
        #expect(history.minutes(of: nil) == [.init(accepted: 8, others: 1), .init()])
        #expect(history.minutes(of: "c") == [.init(), .init()])
        for _ in 0..<ConsoleHistory.minutes { history.read(at: self.start) }
        #expect(history.minutes(of: nil) == Array(repeating: .init(), count: ConsoleHistory.minutes))
    }

    @Test("Latencies are of the calls since an earlier moment")
    func latency() throws {
        func calls(_ fast: Int, _ all: Int) -> MetricsReading {
            let name = "fcmgw_upstream_attempt_duration_seconds_bucket"
            let text = """
                \(name){api="v1",le="0.1",outcome="200"} \(fast)
                \(name){api="v1",le="1",outcome="200"} \(all)
                \(name){api="v1",le="+Inf",outcome="200"} \(all)

                """
            return MetricsReading(text, names: [Substring(name)])
        }
        let earlier = ConsoleHistory.Totals(calls(1_000, 1_000))
        let later = ConsoleHistory.Totals(calls(1_060, 1_100))
        #expect(later.latency(0.5, since: earlier) == 0.1)
        #expect(later.latency(0.99, since: earlier) == 1)
        #expect(earlier.latency(0.5, since: earlier) == nil)
    }

    @Test("A chart has a bar for each minute with traffic, and says its numbers")
    func chart() {
        let svg = HourChart.svg([.init(accepted: 9), .init(), .init(accepted: 30, others: 10)]).text
        #expect(svg.contains("Last hour: 39 recipients accepted (below), 10 not (above); at most 40 a minute"))
        #expect(svg.contains("<rect class=\"accepted\" x=\"590\" y=\"30\" width=\"8\" height=\"90\"/>"))
        #expect(svg.contains("<rect class=\"others\" x=\"590\" y=\"0\" width=\"8\" height=\"30\"/>"))
        #expect(svg.contains("<rect class=\"accepted\" x=\"570\" y=\"93\" width=\"8\" height=\"27\"/>"))
        #expect(!HourChart.svg([.init(), .init()]).text.contains("svg"))
    }
}
