import GatewayTestKit
import Testing

@testable import GatewayCore

/// What was used up stays used up when limits change.
@Suite("PolicyHistory")
struct PolicyHistoryTests {
    private let limiter = MemoryRateLimiter()
    private let clock = ManualClock()

    private func admitted(_ count: Int, _ history: PolicyHistory) async -> Int {
        let request = LimitRequest(history: history, count: count)
        return await self.limiter.admit(request, now: self.clock.now()).admitted(of: count)
    }

    /// How many more messages every policy of the device admits now.
    private func left(_ history: PolicyHistory) async -> Int {
        let status = await self.limiter.status(of: LimitRequest(history: history), now: self.clock.now())
        return status.recipients.first?.map(\.quota.remaining).min() ?? .max
    }

    /// What was used up under one policy, and what is left under the next after some seconds.
    struct Change: Sendable {
        var from: (rate: Int, period: Int, burst: Int)
        var used: Int
        var to: (rate: Int, period: Int, burst: Int)
        var after: Int
        var left: Int
    }

    @Test(
        "What is used up is carried over message by message, a new burst's worth at most",
        arguments: [
            Change(from: (1, 180, 20), used: 5, to: (30, 60, 30), after: 0, left: 25),
            Change(from: (1, 180, 20), used: 5, to: (30, 60, 30), after: 10, left: 30),
            Change(from: (180, 60, 60), used: 60, to: (1, 180, 20), after: 0, left: 0),
            Change(from: (180, 60, 60), used: 60, to: (1, 180, 20), after: 179, left: 0),
            Change(from: (180, 60, 60), used: 60, to: (1, 180, 20), after: 360, left: 2),
            Change(from: (1, 1, 10), used: 4, to: (1, 1, 6), after: 0, left: 2),
            Change(from: (1, 1, 10), used: 0, to: (1, 1, 6), after: 0, left: 6),
        ]
    )
    func carriedOver(change: Change) async throws {
        func policies(_ policy: (rate: Int, period: Int, burst: Int)) throws -> LimitPolicies {
            .device([try .sample(policy.rate, per: policy.period, burst: policy.burst)])
        }
        let former = PolicyHistory(try policies(change.from))
        if change.used > 0 { #expect(await self.admitted(change.used, former) == change.used) }
        let history = former.followed(by: try policies(change.to), at: self.clock.now())
        self.clock.advance(by: .seconds(change.after))
        #expect(await self.left(history) == change.left)
    }

    @Test("A policy that stays keeps its time exactly, whatever comes, goes or moves beside it")
    func stays() async throws {
        let hourly = try RatePolicy.sample(4, per: 3_600, burst: 4)
        let quick = try RatePolicy.sample(1, per: 1, burst: 3)
        var history = PolicyHistory(.device([hourly]))
        #expect(await self.admitted(4, history) == 4)
        for policies in [[quick, hourly], [hourly, quick], [quick, quick, hourly], [hourly]] {
            history = history.followed(by: .device(policies), at: self.clock.now())
            self.clock.advance(by: .seconds(100))
            #expect(await self.admitted(1, history) == 0)
        }
        self.clock.advance(by: .seconds(499))
        #expect(await self.admitted(1, history) == 0)
        self.clock.advance(by: .seconds(1))
        #expect(await self.admitted(2, history) == 1)
    }

    @Test("Changes between two messages are taken one by one; no more than the last ones are remembered")
    func manyChanges() async throws {
        var history = PolicyHistory(.device([try .sample(1, per: 100, burst: 10)]))
        #expect(await self.admitted(10, history) == 10)
        for step in 1...5 * PolicyHistory.maxFormer {
            history = history.followed(by: .device([try .sample(1, per: 100 + step, burst: 10)]), at: self.clock.now())
            if step <= PolicyHistory.maxFormer { #expect(await self.left(history) == 0) }
        }
        #expect(history.former.count == PolicyHistory.maxFormer)
        #expect(history.followed(by: history.policies, at: self.clock.now()) === history)
    }

    @Test("A request that began before a change changes nothing that was charged after it")
    func late() async throws {
        let former = PolicyHistory(.device([try .sample(60, per: 60, burst: 5)]))
        let history = former.followed(by: .device([try .sample(1, per: 600, burst: 5)]), at: self.clock.now())
        #expect(await self.admitted(5, history) == 5)
        _ = await self.admitted(1, former)
        self.clock.advance(by: .seconds(599))
        #expect(await self.left(history) == 0)
        self.clock.advance(by: .seconds(1))
        #expect(await self.left(history) == 1)
    }

    /// Under one policy after the other: what the burst at the span's start, each raise of it and the rates in force allow.
    @Test("No span of any length holds more than bursts, their raises and rates allow", arguments: 0..<60)
    func anySpan(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        var policy = try RatePolicy.random(using: &generator)
        var history = PolicyHistory(.device([policy]))
        /// What all spans from the start to here hold, beside the burst that they begin with.
        var allowance = 0.0
        var moments: [(admitted: Int, allowance: Double, burst: Int)] = []
        for _ in 0..<300 {
            let before = self.clock.now().microseconds
            self.clock.advance(by: .random(using: &generator))
            let elapsed = Double(self.clock.now().microseconds - before) / 1_000_000
            allowance += elapsed * Double(policy.rate) / Double(policy.periodSeconds)
            if Int.random(in: 0..<10, using: &generator) == 0 {
                let next = try RatePolicy.random(using: &generator)
                allowance += Double(max(0, next.burst - policy.burst))
                history = history.followed(by: .device([next]), at: self.clock.now())
                policy = next
            }
            let count = Int.random(in: 1...4, using: &generator)
            moments.append((await self.admitted(count, history), allowance, policy.burst))
        }
        #expect(moments.contains { $0.admitted > 0 })
        for first in moments.indices {
            var total = 0
            for last in first..<moments.count {
                total += moments[last].admitted
                let bound = Double(moments[first].burst) + moments[last].allowance - moments[first].allowance
                guard Double(total) > bound + 0.000_1 else { continue }
                Issue.record("\(total) from step \(first) to \(last), where \(bound) are allowed")
                return
            }
        }
    }

    @Test("Raised limits refuse nothing that the former would admit; lowered ones admit no more", arguments: 0..<80)
    func raisedOrLowered(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let isRaised = seed.isMultiple(of: 2)
        let low = try (0..<Int.random(in: 1...3, using: &generator))
            .map { _ in
                try RatePolicy.random(using: &generator)
            }
        let high = try low.map {
            try RatePolicy.sample(
                $0.rate + .random(in: 0...20, using: &generator),
                per: $0.periodSeconds,
                burst: $0.burst + .random(in: 0...10, using: &generator)
            )
        }
        let former = PolicyHistory(.device(isRaised ? low : high))
        for _ in 0..<20 {
            self.clock.advance(by: .random(using: &generator))
            _ = await self.admitted(.random(in: 1...4, using: &generator), former)
        }
        let history = former.followed(by: .device(isRaised ? high : low), at: self.clock.now())
        for _ in 0..<10 {
            let (before, after) = (await self.left(former), await self.left(history))
            #expect(isRaised ? after >= before : after <= before, "\(before) were left, \(after) are")
            self.clock.advance(by: .random(using: &generator))
        }
    }
}
