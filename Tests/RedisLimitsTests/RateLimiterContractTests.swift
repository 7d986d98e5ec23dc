import GatewayCore
import GatewayTestKit
import RedisLimits
import Testing

/// The contract of every limiter, in memory and over Redis.
@Suite("Rate limiters", .timeLimit(.minutes(4)))
struct RateLimiterContractTests {
    /// One request of a tenant whose limit is one event per second with a burst of five.
    struct Step: Sendable {
        /// In milliseconds.
        var at: Int64
        var ask: Int
        var granted: Int
        var left: Int
        /// In seconds.
        var reset: Int
        var what: String
    }

    /// The steps of one bucket.
    private static let life = [
        Step(at: 0, ask: 0, granted: 0, left: 5, reset: 0, what: "a first peek sees a whole bucket"),
        Step(at: 0, ask: 1, granted: 1, left: 4, reset: 1, what: "one event leaves four"),
        Step(at: 0, ask: 0, granted: 0, left: 4, reset: 1, what: "a peek takes nothing"),
        Step(at: 0, ask: 10, granted: 4, left: 0, reset: 1, what: "too many at once get what is there"),
        Step(at: 0, ask: 1, granted: 0, left: 0, reset: 1, what: "an empty bucket refuses"),
        Step(at: 0, ask: 1_000_000_000, granted: 0, left: 0, reset: 1, what: "very many do not overflow"),
        Step(at: 500, ask: 1, granted: 0, left: 0, reset: 1, what: "half an interval is too little"),
        Step(at: 999, ask: 1, granted: 0, left: 0, reset: 1, what: "so is a millisecond less than one"),
        Step(at: 1_000, ask: 0, granted: 0, left: 1, reset: 4, what: "after an interval one is back"),
        Step(at: 1_000, ask: 1, granted: 1, left: 0, reset: 1, what: "and is taken"),
        Step(at: 3_500, ask: 9, granted: 2, left: 0, reset: 1, what: "two and a half are worth two"),
        Step(at: 8_000, ask: 0, granted: 0, left: 5, reset: 0, what: "the bucket fills up"),
        Step(at: 90_000, ask: 0, granted: 0, left: 5, reset: 0, what: "and no further"),
        Step(at: 90_000, ask: 5, granted: 5, left: 0, reset: 1, what: "five at once"),
        Step(at: 89_999, ask: 1, granted: 0, left: 0, reset: 2, what: "a late thread wins nothing"),
        Step(at: 89_000, ask: 1, granted: 0, left: 0, reset: 2, what: "nor does one a second late"),
        Step(at: 90_000, ask: 1, granted: 0, left: 0, reset: 1, what: "and costs the others nothing"),
        Step(at: 60_000, ask: 1, granted: 0, left: 0, reset: 1, what: "a clock set back empties it"),
        Step(at: 61_000, ask: 1, granted: 1, left: 0, reset: 1, what: "which fills from then on"),
        Step(at: 3_661_000, ask: 9, granted: 5, left: 0, reset: 1, what: "one set forward gives a burst"),
    ]

    @Test("One bucket follows the table of steps", arguments: LimiterKind.allCases)
    func life(kind: LimiterKind) async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 1, burst: 5)])
        try await kind.with { limiter in
            for step in Self.life {
                let request = LimitRequest(policies: policies, recipients: .tenantOnly(step.ask))
                let now = Timestamp(microseconds: Timestamp.sample.microseconds + step.at * 1_000)
                let decision = await limiter.admit(request, now: now)
                #expect(decision.admitted(of: step.ask) == step.granted, "\(step.what)")
                #expect(decision.tenantQuotas.map(\.remaining) == [step.left], "\(step.what)")
                #expect(decision.tenantQuotas.map(\.resetSeconds) == [step.reset], "\(step.what)")
            }
        }
    }

    struct Trial: Sendable, CustomTestStringConvertible {
        var kind: LimiterKind
        var seed: UInt64

        var testDescription: String { "\(self.kind), seed \(self.seed)" }

        static let all = LimiterKind.allCases.flatMap { kind in (0..<20).map { Trial(kind: kind, seed: $0) } }
    }

    @Test("Every decision, wait and quota equals the model's", arguments: Trial.all)
    func agreesWithModel(trial: Trial) async throws {
        var generator = SeededGenerator(seed: trial.seed)
        let policies = try LimitPolicies.random(using: &generator)
        let clock = ManualClock()
        var steps: [(LimitRequest, Timestamp)] = []
        for _ in 0..<300 {
            clock.advance(by: .random(using: &generator))
            steps.append((LimitRequest.random(policies, using: &generator), clock.now()))
        }
        try await trial.kind.with { limiter in
            var model = LimiterModel()
            var (admitsAll, admitsNone) = (false, false)
            for (number, step) in steps.enumerated() {
                let decision = await limiter.admit(step.0, now: step.1)
                let expected = model.admit(step.0, now: step.1)
                #expect(decision.admission == expected.admission, "step \(number): \(step.0)")
                #expect(decision.tenantQuotas == expected.tenantQuotas, "step \(number): \(step.0)")
                guard decision.admission == expected.admission else { return }
                switch decision.admission {
                case .all: admitsAll = true
                case .some: break
                case .none: admitsNone = true
                }
            }
            // The sequence must contain both answers.
            #expect(admitsAll && admitsNone)
        }
    }

    @Test("A group and its members are charged together or not at all", arguments: LimiterKind.allCases)
    func members(kind: LimiterKind) async throws {
        let policies = LimitPolicies(
            tenant: [try .sample(10, per: 1, burst: 10)],
            device: [try .sample(1, per: 10, burst: 2)],
            deviceCollapsible: [try .sample(1, per: 100, burst: 1)]
        )
        let clock = ManualClock()
        try await kind.with { limiter in
            func admit(_ name: String, _ members: [String] = [], isCollapsible: Bool = false) async -> LimitDecision {
                var request = LimitRequest(
                    policies: policies,
                    recipients: .devices([.sample(name)]),
                    isCollapsible: isCollapsible
                )
                if !members.isEmpty { request.members = [0: members.map { LimitKey.sample($0) }] }
                return await limiter.admit(request, now: clock.now())
            }
            #expect(await admit("g", ["a", "b"]).admission == .all)
            #expect(await admit("h", ["a", "c"]).admission == .all)
            for _ in 1...3 {
                let refused = await admit("i", ["c", "a", "d"], isCollapsible: true)
                #expect(refused.admission == .none(LimitDecision.Denial(scope: .device, retryAfter: 10)))
                #expect(refused.tenantQuotas.map(\.remaining) == [8])
            }
            for name in ["c", "d", "i"] { #expect(await admit(name).admission == .all) }
            clock.advance(by: .seconds(10))
            #expect(await admit("i", ["c", "a", "d"], isCollapsible: true).admission == .all)
            #expect(
                await admit("i", isCollapsible: true).admission
                    == .none(LimitDecision.Denial(scope: .deviceCollapsible, retryAfter: 100))
            )
        }
    }

    @Test("A long list is admitted in order, up to the tenant's quota", arguments: LimiterKind.allCases)
    func longList(kind: LimiterKind) async throws {
        let policies = LimitPolicies(
            tenant: [try .sample(1, per: 1, burst: 700)],
            device: [try .sample(1, per: 60, burst: 1)],
            deviceCollapsible: [],
            topic: []
        )
        try await kind.with { limiter in
            let keys = (0..<1_000).map { LimitKey.sample("device \($0)") }
            let one = LimitRequest(policies: policies, recipients: .devices([keys[3]]))
            #expect(await limiter.admit(one, now: .sample).admission == .all)
            let decision = await limiter.admit(
                LimitRequest(policies: policies, recipients: .devices(keys)),
                now: .sample
            )
            guard case .some(let denials) = decision.admission else {
                Issue.record("\(decision.admission)")
                return
            }
            #expect(denials.indices.filter { denials[$0] == nil } == Array(0..<700).filter { $0 != 3 })
            #expect(denials[3]?.scope == .device)
            #expect(denials[700...].allSatisfy { $0?.scope == .tenant })
            #expect(decision.tenantQuotas.map(\.remaining) == [0])
        }
    }

    @Test("A status reports each remaining quota and charges nothing", arguments: LimiterKind.allCases)
    func status(kind: LimiterKind) async throws {
        let policies = LimitPolicies(
            tenant: [try .sample(10, per: 1, burst: 10)],
            device: [try .sample(1, per: 10, burst: 2)],
            deviceCollapsible: [try .sample(1, per: 100, burst: 1)],
            topic: [try .sample(1, per: 5, burst: 2)]
        )
        try await kind.with { limiter in
            func request(_ recipients: LimitRequest.Recipients) -> LimitRequest {
                LimitRequest(policies: policies, recipients: recipients, isCollapsible: true)
            }
            _ = await limiter.admit(request(.devices([.sample("a")])), now: .sample)
            for _ in 0..<2 {
                let left = await limiter.status(of: request(.devices([.sample("a"), .sample("b")])), now: .sample)
                #expect(left.tenant.map(\.remaining) == [9])
                let scopes: [LimitScope] = [.device, .deviceCollapsible]
                #expect(left.recipients.map { $0.map(\.scope) } == [scopes, scopes])
                #expect(left.recipients.map { $0.map(\.quota.remaining) } == [[1, 0], [2, 1]])
                #expect(left.recipients.map { $0.map(\.quota.resetSeconds) } == [[10, 100], [0, 0]])
            }
            let topics = await limiter.status(of: request(.topics([.sample("t")])), now: .sample)
            #expect(topics.recipients.map { $0.map(\.scope) } == [[.topic]])
            #expect(await limiter.status(of: request(.tenantOnly(3)), now: .sample).recipients == [])
        }
    }

    @Test("A changed policy has a full bucket, separate from the former one", arguments: LimiterKind.allCases)
    func changedPolicy(kind: LimiterKind) async throws {
        let former = LimitPolicies.device([try .sample(1, per: 600, burst: 5)])
        let later = LimitPolicies.device([try .sample(1, per: 600, burst: 3)])
        try await kind.with { limiter in
            func admitted(_ policies: LimitPolicies) async -> Int {
                await limiter.admit(LimitRequest(policies: policies, count: 9), now: .sample).admitted(of: 9)
            }
            #expect([await admitted(former), await admitted(later)] == [5, 3])
            #expect([await admitted(former), await admitted(later)] == [0, 0])
        }
    }

    @Test("Concurrent callers together are admitted as much as one caller", arguments: LimiterKind.allCases)
    func concurrent(kind: LimiterKind) async throws {
        let policies = LimitPolicies(
            tenant: [try .sample(1, per: 60, burst: 500)],
            device: [try .sample(1, per: 60, burst: 3)],
            deviceCollapsible: [],
            topic: []
        )
        try await kind.with { limiter in
            let devices = (0..<40).map { LimitKey.sample("device \($0)") }
            let request = LimitRequest(policies: policies, recipients: .devices(devices))
            let total = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        var admitted = 0
                        for _ in 0..<10 {
                            admitted += await limiter.admit(request, now: .sample).admitted(of: devices.count)
                        }
                        return admitted
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(total == 3 * devices.count)
        }
    }
}
