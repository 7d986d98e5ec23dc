import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Synchronization
import Testing

@Suite("SendPipeline and retired tokens")
struct SendPipelineRetirementTests {
    /// The tokens that the upstream reports as unregistered, and those that it replaces.
    final class Registrations: Sendable {
        let dead = Mutex<Set<String>>([])
        let replaced = Mutex<[String: String]>([:])

        func setDead(_ tokens: some Sequence<String>) {
            self.dead.withLock { $0 = Set(tokens) }
        }

        func answer(_ call: UpstreamCall) -> SendResult {
            let dead = self.dead.withLock { $0 }
            let replaced = self.replaced.withLock { $0 }
            let texts: [String] =
                switch call.target {
                case .token(let text), .installation(let text): [text]
                case .tokens(let texts), .installations(let texts): texts
                case .topic, .condition, .notificationKey, .deviceGroup: []
                }
            let outcomes = texts.map { text -> RecipientOutcome in
                if dead.contains(text) { return .rejected(.unregistered) }
                return .accepted(Acceptance(messageID: "for \(text)", replacementToken: replaced[text]))
            }
            return texts.isEmpty
                ? ScriptedUpstream.accepting(call)
                : SendResult(outcomes, upstreamCode: "200")
        }
    }

    private let registrations = Registrations()

    private func fixture(
        clock: ManualClock = ManualClock(),
        store: TestRetiredTokenStore? = nil,
        configuration: RetiredTokens.Configuration = .sample(),
        profiles: [TenantProfile] = []
    ) -> PipelineFixture {
        let registrations = self.registrations
        return PipelineFixture(
            queueCapacity: 100_000,
            clock: clock,
            retiredStore: store,
            retiredConfiguration: configuration,
            profiles: profiles
        ) { registrations.answer($0) }
    }

    private func fed(_ fixture: PipelineFixture, _ principal: Principal) async throws -> [RetiredToken] {
        await fixture.retired.settleAndFlush()
        return try await fixture.retired.feed(of: principal.profile, after: nil, limit: 10_000).tokens
    }

    private func send(_ fixture: PipelineFixture, _ principal: Principal, _ target: Target) async -> SendResult.Answer {
        await fixture.pipeline.send(.sample(from: principal, to: target)).result.answer
    }

    private static let gone = SendResult.Answer.recipients([.rejected(.unregistered)])

    @Test("A dead token is refused locally for a day, then tried again, and leaves the list if FCM accepts it")
    func day() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        self.registrations.setDead(["gone"])
        #expect(await self.send(fixture, principal, .token("gone")) == Self.gone)
        await fixture.retired.flush()
        for _ in 0..<24 {
            #expect(await self.send(fixture, principal, .token("gone")) == Self.gone)
            fixture.clock.advance(by: .seconds(3_599))
            await fixture.retired.settleAndFlush()
        }
        #expect(fixture.upstream.calls.count == 1)
        #expect(fixture.metrics.counterTotal(label: "fcmgw_retired_token_refusals_total", dimensions: []) == 24)

        fixture.clock.advance(by: .seconds(24))
        #expect(await self.send(fixture, principal, .token("gone")) == Self.gone)
        #expect(await self.send(fixture, principal, .token("gone")) == Self.gone)
        #expect(fixture.upstream.calls.count == 2)
        #expect(try await self.fed(fixture, principal).map(\.text) == ["gone"])

        self.registrations.setDead([])
        fixture.clock.advance(by: .seconds(86_400))
        let alive = SendResult.Answer.recipients([.accepted(Acceptance(messageID: "for gone"))])
        #expect(await self.send(fixture, principal, .token("gone")) == alive)
        #expect(await self.send(fixture, principal, .token("gone")) == alive)
        #expect(fixture.upstream.calls.count == 4)
        #expect(try await self.fed(fixture, principal).isEmpty)
        #expect(try await fixture.retiredStore.entries().isEmpty)
    }

    @Test("A local refusal costs no quota, and the answer reports the remaining quota")
    func quota() async throws {
        let fixture = self.fixture()
        let limits = LimitPolicies(
            tenant: [try .sample(100, per: 10, burst: 100)],
            device: [try .sample(1, per: 86_400, burst: 2)]
        )
        let principal = try Principal.sample(limits: limits)
        self.registrations.setDead(["gone"])
        let first = await fixture.pipeline.send(.sample(from: principal, to: .token("gone")))
        #expect(first.quotas.map(\.remaining) == [99])
        for _ in 0..<200 {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("gone")))
            #expect(outcome.result.answer == Self.gone)
            #expect(outcome.quotas.map(\.remaining) == [99])
        }
        let list = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["gone", "a", "gone"])))
        #expect(
            list.result.answer
                == .recipients([
                    .rejected(.unregistered), .accepted(Acceptance(messageID: "for a")), .rejected(.unregistered),
                ])
        )
        #expect(list.quotas.map(\.remaining) == [98])
        #expect(fixture.upstream.calls.map(\.target) == [.token("gone"), .tokens(["a"])])
        #expect(fixture.metrics.counterTotal(label: "fcmgw_retired_token_refusals_total", dimensions: []) == 202)
    }

    @Test("The audit records the number of recipients refused as retired")
    func audit() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        self.registrations.setDead(["gone"])
        _ = await self.send(fixture, principal, .token("gone"))
        _ = await self.send(fixture, principal, .token("gone"))
        _ = await self.send(fixture, principal, .tokens(["a", "gone"]))
        _ = await self.send(fixture, principal, .tokens(["gone", "gone"]))
        let records = try await fixture.records()
        #expect(records.map(\.object) == [nil, "retired: 1", "retired: 1", "retired: 2"])
        #expect(records.map(\.upstreamCode) == ["200", nil, "200", nil])
        #expect(records.map(\.code) == ["unregistered", "unregistered", "unregistered", "unregistered"])
        #expect(records.map(\.outcome) == [.rejected, .rejected, .partial, .rejected])
        #expect(records.map(\.recipients) == [1, 1, 2, 2])
        #expect(records.map(\.pseudonyms.count) == [1, 1, 2, 2])
    }

    @Test("Retired tokens of a list are refused for any outcome of the rest, and results keep their places")
    func rest() async throws {
        let refusal = Mutex<OutcomeCode?>(nil)
        let registrations = self.registrations
        let limits = LimitPolicies(device: [try .sample(1, per: 60, burst: 1)])
        let fixture = PipelineFixture { call in
            if let code = refusal.withLock({ $0 }) {
                return SendResult(refused: code, retryAfter: 9, upstreamCode: "503")
            }
            return registrations.answer(call)
        }
        let principal = try Principal.sample(limits: limits)
        registrations.setDead(["x", "y"])
        _ = await self.send(fixture, principal, .tokens(["x", "y", "busy"]))

        let busy = RecipientOutcome.rejected(Rejection(code: .deviceRateExceeded, retryAfter: 60, limitedBy: .gateway))
        let dead = RecipientOutcome.rejected(.unregistered)
        let partial = await self.send(fixture, principal, .tokens(["x", "busy", "a", "y", "b"]))
        #expect(
            partial
                == .recipients([
                    dead, busy, .accepted(Acceptance(messageID: "for a")), dead,
                    .accepted(Acceptance(messageID: "for b")),
                ])
        )
        // A cause shared by all remaining recipients does not apply to those refused locally.
        #expect(await self.send(fixture, principal, .tokens(["busy", "x"])) == .recipients([busy, dead]))
        refusal.withLock { $0 = .upstreamUnavailable }
        let down = RecipientOutcome.rejected(Rejection(code: .upstreamUnavailable, retryAfter: 9))
        #expect(await self.send(fixture, principal, .tokens(["x", "c", "d"])) == .recipients([dead, down, down]))
        #expect(await self.send(fixture, principal, .tokens(["x", "y"])) == .recipients([dead, dead]))
    }

    @Test("Installation ids are retired too, and the feed marks them as installations")
    func installations() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        self.registrations.setDead(["fid-1"])
        _ = await self.send(fixture, principal, .installations(["fid-1", "fid-2"]))
        #expect(await self.send(fixture, principal, .installation("fid-1")) == Self.gone)
        await fixture.retired.settleAndFlush()
        fixture.clock.advance(by: .seconds(3_900))
        #expect(
            try await self.fed(fixture, principal)
                == [RetiredToken(kind: .installation, text: "fid-1", state: .unregistered, since: .sample)]
        )
    }

    @Test("A replaced token is fed at once with its replacement, and sends to it continue")
    func replaced() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        self.registrations.replaced.withLock { $0 = ["old": "new"] }
        for _ in 0..<3 { _ = await self.send(fixture, principal, .token("old")) }
        #expect(fixture.upstream.calls.count == 3)
        let entry = RetiredToken(kind: .token, text: "old", state: .replaced, since: .sample, replacement: "new")
        #expect(try await self.fed(fixture, principal) == [entry])
        // Three sends, one entry. The other changes are counts.
        #expect(fixture.retiredStore.batches == [4])
    }

    @Test(
        "A result that says nothing about a token retires no token",
        arguments: [
            SendResult(refused: .unregistered, upstreamCode: "200"),
            SendResult(refused: .upstreamProtocol, upstreamCode: "404"),
            SendResult(
                [.rejected(.invalidToken), .rejected(.upstreamProtocol)],
                upstreamCode: ""
            ),
            SendResult([.rejected(.unregistered)], upstreamCode: ""),
            SendResult(
                .group(GroupOutcome(success: 0, failure: 2, failedTokens: ["a", "b"])),
                upstreamCode: ""
            ),
        ]
    )
    func noWord(result: SendResult) async throws {
        let fixture = PipelineFixture { _ in result }
        let principal = try Principal.sample()
        _ = await self.send(fixture, principal, .tokens(["a", "b"]))
        _ = await self.send(fixture, principal, try .topic(named: "a"))
        _ = await self.send(fixture, principal, .notificationKey("a"))
        await fixture.retired.settleAndFlush()
        #expect(try await fixture.retiredStore.entries().isEmpty)
        _ = await self.send(fixture, principal, .tokens(["a", "b"]))
        #expect(fixture.upstream.calls.count == 4)
    }

    @Test("A single token is retired if the whole send is refused as unregistered")
    func wholeAnswer() async throws {
        let fixture = PipelineFixture { _ in SendResult(refused: .unregistered, upstreamCode: "200") }
        let principal = try Principal.sample()
        _ = await self.send(fixture, principal, .token("a"))
        #expect(await self.send(fixture, principal, .token("a")) == Self.gone)
        #expect(fixture.upstream.calls.count == 1)
    }

    @Test("A tenant's retired tokens do not affect another tenant")
    func tenantsApart() async throws {
        let fixture = self.fixture()
        let (acme, other) = (try Principal.sample(tenant: "acme"), try Principal.sample(tenant: "other"))
        self.registrations.setDead(["gone"])
        _ = await self.send(fixture, acme, .token("gone"))
        _ = await self.send(fixture, other, .token("gone"))
        #expect(fixture.upstream.calls.count == 2)
        await fixture.retired.settleAndFlush()
        fixture.clock.advance(by: .seconds(3_900))
        #expect(try await self.fed(fixture, acme).count == 1)
        self.registrations.setDead([])
        fixture.clock.advance(by: .seconds(86_400))
        _ = await self.send(fixture, acme, .token("gone"))
        #expect(try await self.fed(fixture, acme).isEmpty)
        #expect(try await self.fed(fixture, other).count == 1)
    }

    @Test("A preview is refused only if all recipients are retired, and counts no refusal")
    func preview() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        self.registrations.setDead(["gone"])
        _ = await self.send(fixture, principal, .token("gone"))
        let lone = try await fixture.pipeline.preview(.sample(from: principal, to: .token("gone")), maxRequests: 1)
        #expect(lone.refusal?.code == .unregistered)
        let some = try await fixture.pipeline.preview(
            .sample(from: principal, to: .tokens(["gone", "a"])),
            maxRequests: 1
        )
        #expect(some.refusal == nil)
        #expect(fixture.metrics.counterTotal(label: "fcmgw_retired_token_refusals_total", dimensions: []) == 0)
    }

    // MARK: Spikes

    /// Limits that no spike test reaches.
    private static func ampleLimits() throws -> LimitPolicies {
        let ample = [try RatePolicy.sample(1_000_000, per: 1, burst: 1_000_000)]
        return LimitPolicies(tenant: ample, device: ample, deviceCollapsible: ample, topic: ample)
    }

    private static let audience = (0..<1_000).map { "device-\($0)" }

    /// The form of the sends to a thousand tokens: lists of 100, or one token each.
    enum Portion: CaseIterable {
        case lists, singles
    }

    private func sendToAll(
        _ fixture: PipelineFixture,
        _ principal: Principal,
        by portion: Portion,
        pause: Duration = .zero
    ) async {
        switch portion {
        case .lists:
            for start in stride(from: 0, to: Self.audience.count, by: 100) {
                _ = await self.send(fixture, principal, .tokens(Array(Self.audience[start..<start + 100])))
                await fixture.retired.settleAndFlush()
                fixture.clock.advance(by: pause * 100)
            }
        case .singles:
            for (index, token) in Self.audience.enumerated() {
                _ = await self.send(fixture, principal, .token(token))
                fixture.clock.advance(by: pause)
                if index.isMultiple(of: 10) { await fixture.retired.settleAndFlush() }
            }
        }
        await fixture.retired.settleAndFlush()
    }

    private func spikeGauge(_ fixture: PipelineFixture) throws -> Double? {
        try fixture.metrics.expectMeter("fcmgw_retired_token_spike_active", [("tenant", "acme")]).values.last
    }

    @Test(
        "If a credential fault reports 950 of 1,000 live tokens dead, none is fed or refused, and the alert rises",
        arguments: Portion.allCases,
        [Duration.zero, .milliseconds(3_600)]
    )
    func massDeath(portion: Portion, pause: Duration) async throws {
        let principal = try Principal.sample(limits: Self.ampleLimits())
        let fixture = self.fixture(profiles: [principal.profile])
        for _ in 0..<3 { await self.sendToAll(fixture, principal, by: portion, pause: pause) }
        self.registrations.setDead(Self.audience.dropFirst(50))
        await self.sendToAll(fixture, principal, by: portion, pause: pause)
        #expect(try self.spikeGauge(fixture) == 1)
        #expect(try await fixture.retiredStore.entries().count == 950)

        let calls = fixture.upstream.calls.count
        _ = await self.send(fixture, principal, .tokens(Self.audience))
        #expect(fixture.upstream.calls.count == calls + 1)
        #expect(fixture.upstream.calls.last?.target == .tokens(Self.audience))

        for _ in 0..<100 {
            fixture.clock.advance(by: .seconds(3_600))
            #expect(try await self.fed(fixture, principal).isEmpty)
        }
        #expect(try await fixture.retiredStore.entries().count { $0.state == .suspected } == 950)
        #expect(try self.spikeGauge(fixture) == 0)

        // The credential is repaired: all tokens are alive, and none was fed.
        self.registrations.setDead([])
        await self.sendToAll(fixture, principal, by: portion, pause: pause)
        #expect(try await self.fed(fixture, principal).isEmpty)
        #expect(try await fixture.retiredStore.entries().isEmpty)
    }

    @Test("If 5 % of the tokens die within an hour, all of them are fed", arguments: Portion.allCases, [false, true])
    func ordinaryDeath(portion: Portion, isClustered: Bool) async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample(limits: Self.ampleLimits())
        await self.sendToAll(fixture, principal, by: portion, pause: .milliseconds(3_600))
        let dead =
            isClustered
            ? Array(Self.audience.prefix(50)) : stride(from: 7, to: 1_000, by: 20).map { Self.audience[$0] }
        self.registrations.setDead(dead)
        await self.sendToAll(fixture, principal, by: portion, pause: .milliseconds(3_600))
        fixture.clock.advance(by: .seconds(3_900))
        let fed = try await self.fed(fixture, principal)
        #expect(Set(fed.map(\.text)) == Set(dead))
        #expect(fed.count == 50)
        #expect(fed.allSatisfy { $0.state == .unregistered && $0.replacement == nil })
        #expect(fixture.upstream.calls.count == (portion == .lists ? 20 : 2_000))
        await self.sendToAll(fixture, principal, by: .singles)
        #expect(fixture.metrics.counterTotal(label: "fcmgw_retired_token_refusals_total", dimensions: []) == 50)
    }

    // MARK: The store

    @Test("A new process loads the retired tokens and the current spike from the store")
    func restart() async throws {
        let clock = ManualClock()
        let store = TestRetiredTokenStore(clock: clock)
        let principal = try Principal.sample()
        self.registrations.setDead(["gone"])
        let before = self.fixture(clock: clock, store: store)
        _ = await self.send(before, principal, .tokens(["gone", "a"]))
        await before.retired.settleAndFlush()

        let again = try Principal.sample()
        let second = self.fixture(clock: clock, store: store, profiles: [again.profile])
        try await second.retired.load()
        #expect(await self.send(second, again, .token("gone")) == Self.gone)
        #expect(second.upstream.calls.isEmpty)
        self.registrations.setDead(Self.audience)
        _ = await self.send(second, again, .tokens(Self.audience))
        await second.retired.flush()

        let last = try Principal.sample()
        let third = self.fixture(clock: clock, store: store, profiles: [last.profile])
        try await third.retired.load()
        await third.retired.settle()
        #expect(try self.spikeGauge(third) == 1)
        clock.advance(by: .seconds(7_200))
        #expect(try await self.fed(third, last).isEmpty)
        _ = await self.send(third, last, .tokens(["gone"] + Self.audience.prefix(10)))
        #expect(third.upstream.calls.count == 1)
    }

    @Test("Changes refused by the store are written later in order, and an old report becomes suspected")
    func refusingStore() async throws {
        let fixture = self.fixture()
        let principal = try Principal.sample()
        fixture.retiredStore.refuse()
        self.registrations.setDead(["x", "y"])
        _ = await self.send(fixture, principal, .tokens(["x", "y"]))
        #expect(await fixture.retired.flush() == false)
        #expect(await self.send(fixture, principal, .token("x")) == Self.gone)
        fixture.clock.advance(by: .seconds(86_400))
        self.registrations.setDead([])
        _ = await self.send(fixture, principal, .token("x"))
        #expect(await fixture.retired.flush() == false)
        fixture.retiredStore.refuse(false)
        await fixture.retired.flush()
        fixture.clock.advance(by: .seconds(3_900))
        #expect(try await self.fed(fixture, principal).isEmpty)
        #expect(try await fixture.retiredStore.entries().map(\.state) == [.suspected])
        self.registrations.setDead(["y"])
        _ = await self.send(fixture, principal, .token("y"))
        await fixture.retired.flush()
        fixture.clock.advance(by: .seconds(3_900))
        #expect(try await self.fed(fixture, principal).map(\.text) == ["y"])
        func changes(_ result: String) -> Int64 {
            fixture.metrics.counterTotal(label: "fcmgw_retired_token_changes_total", dimensions: [("result", result)])
        }
        #expect(changes("dropped") == 0)
        #expect(changes("refused") > 0)
        #expect(changes("written") > 0)
    }

    @Test("Reports dropped by a full queue still count towards a spike")
    func droppedReports() async throws {
        let fixture = self.fixture(configuration: .sample(queueCapacity: 1))
        let principal = try Principal.sample(limits: Self.ampleLimits())
        self.registrations.setDead(Self.audience)
        fixture.retiredStore.refuse()
        for token in Self.audience.prefix(30) { _ = await self.send(fixture, principal, .token(token)) }
        fixture.retiredStore.refuse(false)
        await fixture.retired.settleAndFlush()
        await fixture.retired.settle()
        #expect(try self.spikeGauge(fixture) == 1)
    }

    @Test(
        "A full queue drops reports and counts them; a later report of the same token is stored",
        arguments: [RetiredTokens.Configuration.sample(queueCapacity: 4), .sample(queueBytes: 2)]
    )
    func fullQueue(configuration: RetiredTokens.Configuration) async throws {
        let fixture = self.fixture(configuration: configuration)
        let principal = try Principal.sample()
        fixture.retiredStore.refuse()
        self.registrations.setDead(["a", "b", "c"])
        for token in ["a", "b"] { _ = await self.send(fixture, principal, .token(token)) }
        // Refused changes stay in the queue.
        #expect(await fixture.retired.flush() == false)
        _ = await self.send(fixture, principal, .token("c"))
        #expect(await fixture.retired.flush() == false)
        let dropped = [("result", "dropped")]
        #expect(fixture.metrics.counterTotal(label: "fcmgw_retired_token_changes_total", dimensions: dropped) == 1)
        // A token that is not listed is not refused.
        let calls = fixture.upstream.calls.count
        _ = await self.send(fixture, principal, .token("c"))
        #expect(fixture.upstream.calls.count == calls + 1)
        fixture.retiredStore.refuse(false)
        await fixture.retired.flush()
        _ = await self.send(fixture, principal, .token("c"))
        await fixture.retired.flush()
        #expect(try await fixture.retiredStore.entries().count == 3)
    }

    @Test("A trim removes entries beyond the bound from store and memory, and expired ones from the store")
    func trimmed() async throws {
        let fixture = self.fixture(configuration: .sample(maxEntries: 3), profiles: [try Principal.sample().profile])
        let principal = try Principal.sample()
        let tokens = (0..<6).map { "t\($0)" }
        self.registrations.setDead(tokens)
        for token in tokens {
            _ = await self.send(fixture, principal, .token(token))
            fixture.clock.advance(by: .seconds(1))
        }
        await fixture.retired.settleAndFlush()
        await fixture.retired.trim()
        await fixture.retired.settle()
        #expect(try await fixture.retiredStore.entries().count == 3)
        let calls = fixture.upstream.calls.count
        for token in tokens { _ = await self.send(fixture, principal, .token(token)) }
        #expect(fixture.upstream.calls.count == calls + 3)
        await fixture.retired.flush()
        fixture.clock.advance(by: .seconds(90 * 86_400))
        await fixture.retired.trim()
        #expect(try await fixture.retiredStore.entries().count <= 3)
        fixture.clock.advance(by: .seconds(86_400))
        await fixture.retired.trim()
        #expect(try await fixture.retiredStore.entries().isEmpty)
    }

    @Test("A trim drops the list of a tenant that no longer exists, and its tokens are sent to again")
    func remadeTenant() async throws {
        let fixture = self.fixture(profiles: [])
        self.registrations.setDead(["gone"])
        let principal = try Principal.sample()
        _ = await self.send(fixture, principal, .token("gone"))
        #expect(await self.send(fixture, principal, .token("gone")) == Self.gone)
        await fixture.retired.flush()
        // The tenant no longer exists.
        await fixture.retired.trim()
        let later = try Principal.sample()
        _ = await self.send(fixture, later, .token("gone"))
        #expect(fixture.upstream.calls.count == 2)
    }
}
