import Testing

@testable import FCMGateway
@testable import GatewayService

struct ProgressTests {
    private let start = ContinuousClock.now

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant {
        self.start.advanced(by: .milliseconds(milliseconds))
    }

    @Test("Progress lines are printed once a second and at the end")
    func lines() {
        var pace = ProgressReporter.Pace("records", style: .lines)
        #expect(pace.text(done: 0, of: 400, at: self.at(0)) == "records: 0 of 400 (0 %)\n")
        #expect(pace.text(done: 10, of: 400, at: self.at(999)) == nil)
        #expect(pace.text(done: 399, of: 400, at: self.at(1_000)) == "records: 399 of 400 (99 %)\n")
        #expect(pace.text(done: 400, of: 400, at: self.at(1_001)) == "records: 400 of 400 (100 %)\n")
        #expect(pace.ending() == nil)
    }

    @Test("The progress line is overwritten four times a second and cleared at the end")
    func oneLine() {
        var pace = ProgressReporter.Pace("records", style: .oneLine)
        let told = (0...2_000).compactMap { pace.text(done: $0, of: 10_000, at: self.at($0)) }
        #expect(told.count == 9)
        #expect(told.allSatisfy { $0.hasPrefix("\r\u{1B}[Krecords: ") && !$0.contains("\n") })
        #expect(pace.ending() == "\r\u{1B}[K")
        #expect(pace.ending() == nil)
    }

    @Test("Silent progress prints nothing; the share is at most 100 % and absent without a total")
    func corners() {
        var silent = ProgressReporter.Pace("records", style: .silent)
        #expect(silent.text(done: 1, of: 1, at: self.at(0)) == nil)
        var growing = ProgressReporter.Pace("records", style: .lines)
        #expect(growing.text(done: 7, of: 5, at: self.at(0)) == "records: 7 of 5 (100 %)\n")
        var empty = ProgressReporter.Pace("records", style: .lines)
        #expect(empty.text(done: 0, of: 0, at: self.at(0)) == "records: 0 of 0 (100 %)\n")
        var unknown = ProgressReporter.Pace("records", style: .lines)
        #expect(unknown.text(done: 3, of: nil, at: self.at(0)) == "records: 3\n")
    }

    @Test(
        "The terminal decides the style of progress, unless the operator does",
        arguments: [
            (nil, true, "xterm", .oneLine), (nil, true, "dumb", .lines), (nil, false, "xterm", .silent),
            (true, false, "xterm", .lines), (true, true, "xterm", .oneLine), (false, true, "xterm", .silent),
        ] as [(Bool?, Bool, String, ProgressReporter.Pace.Style)]
    )
    func style(isWanted: Bool?, isTerminal: Bool, term: String, style: ProgressReporter.Pace.Style) {
        let terminal = Terminal(isTerminal: isTerminal, environment: ["TERM": term])
        #expect(ProgressReporter.Pace.Style(isWanted: isWanted, on: terminal) == style)
    }
}
