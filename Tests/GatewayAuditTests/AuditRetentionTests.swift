import Testing

@testable import GatewayAudit

struct AuditRetentionTests {
    private static let oneDay = Duration.seconds(86_400)

    private static func day(_ number: Int) -> Timestamp {
        Timestamp(microseconds: (20_000 + Int64(number)) * 86_400_000_000)
    }

    /// Returns a span of ten records for each day of each chain.
    private static func spans(_ chains: [[Int]]) -> [AuditRetention.TimeSpan] {
        chains.enumerated()
            .flatMap { index, days in
                days.enumerated()
                    .map { number, day in
                        AuditRetention.TimeSpan(
                            writer: index + 1,
                            first: number * 10 + 1,
                            last: number * 10 + 10,
                            minTime: Self.day(day),
                            maxTime: Self.day(day).advanced(by: .seconds(80_000))
                        )
                    }
            }
    }

    private static func heads(_ chains: [[Int]], open: Int? = nil) -> [AuditHead] {
        chains.enumerated()
            .map { index, days in
                AuditHead(
                    writer: index + 1,
                    sequence: days.count * 10,
                    hash: [],
                    state: open == index + 1 ? .open : .closed,
                    seal: []
                )
            }
    }

    private func removals(_ chains: [[Int]], keep: Int = 400, now: Int, open: Int? = nil) -> [AuditChain.Position] {
        let spans = Self.spans(chains)
        return AuditRetention(Self.oneDay * keep, now: Self.day(now), spans: spans)
            .removals(spans, heads: Self.heads(chains, open: open))
    }

    @Test("Records are removed only after their retention time")
    func plain() {
        let chains = [Array(0...499)]
        #expect(self.removals(chains, now: 400).isEmpty)
        // The span of day 0 ends 80,000 s after the day's start.
        #expect(self.removals(chains, now: 402) == [AuditChain.Position(writer: 1, sequence: 20)])
        #expect(self.removals(chains, now: 500) == [AuditChain.Position(writer: 1, sequence: 1_000)])
    }

    @Test("Whole chains are removed, but the last record of an open chain stays")
    func chains() {
        let chains = [Array(0...9), Array(10...19), Array(20...450)]
        let removals = self.removals(chains, now: 451)
        #expect(removals.map(\.writer) == [1, 2, 3])
        #expect(removals.map(\.sequence) == [100, 100, 310])
        #expect(self.removals([[0], Array(1...450)], keep: 1, now: 470, open: 2).last?.sequence == 4_499)
    }

    @Test("A clock that jumps ahead removes no records, even over several starts")
    func jumpAhead() {
        // A hundred days of records, then five starts under a clock that is years ahead.
        let chains = [Array(0...99)] + (1...5).map { [2_000 + $0] }
        #expect(self.removals(chains, now: 2_006).isEmpty)
        #expect(self.removals([Array(0...99)], now: 100_000).isEmpty)
    }

    @Test("A long time without records counts as 30 days")
    func rest() {
        let chains = [Array(0...379)]
        #expect(self.removals(chains, now: 900) == [AuditChain.Position(writer: 1, sequence: 90)])
    }

    @Test("Records made under a clock that was ahead are kept as long as those after them")
    func correctedClock() {
        // The second chain was written on days 10 to 12 by a clock that said 9,000.
        let chains = [Array(0...9), [9_000, 9_001, 9_002], Array(13...420)]
        let removals = self.removals(chains, now: 412)
        #expect(removals.map(\.writer) == [1])
        #expect(self.removals(chains, now: 414).map(\.writer) == [1, 2, 3])
    }

    @Test("Records made under a clock that was behind stay until all before them go")
    func clockBehind() {
        let chains = [Array(0...399), [-9_000], Array(400...405)]
        let removals = self.removals(chains, now: 402)
        #expect(removals.map(\.writer) == [1])
        #expect((removals.first?.sequence ?? 0) < 400)
    }

    @Test("Falsified times cause no overflow", arguments: [Int64.min, Int64.max, 0, -1])
    func falsified(time: Int64) {
        let moment = Timestamp(microseconds: time)
        let spans = [AuditRetention.TimeSpan(writer: 1, first: 1, last: 10, minTime: moment, maxTime: moment)]
        let heads = Self.heads([[0]])
        for now in [Int64.min, 0, 1_790_000_000_000_000, Int64.max] {
            let retention = AuditRetention(Self.oneDay, now: Timestamp(microseconds: now), spans: spans)
            #expect(retention.removals(spans, heads: heads).count <= 1)
        }
    }
}
