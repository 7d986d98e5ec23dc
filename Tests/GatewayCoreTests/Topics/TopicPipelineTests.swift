import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("TopicPipeline", .timeLimit(.minutes(10)))
struct TopicPipelineTests {
    /// A topic pipeline with test doubles for its dependencies.
    private struct Fixture {
        let clock = ManualClock()
        let store = InMemoryAuditStore()
        let metrics = TestMetrics()
        let upstream = ScriptedTopics()
        let audit: AuditLog
        let pipeline: TopicPipeline

        init(queueCapacity: Int = 100, isStrict: Bool = false) {
            var configuration = AuditLog.Configuration.sample(queueCapacity: queueCapacity)
            configuration.mode = isStrict ? .strict : .bounded
            self.audit = .sample(store: self.store, clock: self.clock, configuration: configuration)
            self.pipeline = TopicPipeline(
                limiter: MemoryRateLimiter.withoutJitter(metrics: GatewayMetrics(factory: self.metrics)),
                upstream: self.upstream,
                audit: self.audit,
                clock: self.clock,
                metrics: GatewayMetrics(factory: self.metrics)
            )
        }

        func records() async throws -> [AuditRecord] {
            try await self.audit.whileRunning {}
            return self.store.current.records.map(\.record).filter { $0.action.hasPrefix("topic.") }
        }

        func change(
            _ tokens: [String],
            of principal: Principal,
            _ change: SubscriptionChange = .subscribe,
            topic: String = "news"
        ) async throws -> ChargedAnswer<[SubscriptionOutcome]> {
            let topic = try #require(TopicName(topic))
            let caller = Caller(principal: principal, origin: .sample, deadline: .now + .seconds(600))
            return await self.pipeline.change(SubscriptionCall(change, of: tokens, to: topic, by: caller))
        }

        func look(up token: String, of principal: Principal) async -> ChargedAnswer<RegistrationInfo> {
            let caller = Caller(principal: principal, origin: .sample, deadline: .now + .seconds(600))
            return await self.pipeline.look(up: RegistrationCall(.subscriptions, of: token, by: caller))
        }
    }

    private func refusal<Value>(_ answer: ChargedAnswer<Value>) -> Refusal? {
        if case .failure(let refusal) = answer.result { refusal } else { nil }
    }

    private func outcomes(_ answer: ChargedAnswer<[SubscriptionOutcome]>) -> [SubscriptionOutcome]? {
        try? answer.result.get()
    }

    @Test("Canonically equivalent tokens with different bytes are two tokens")
    func bytes() async throws {
        let fixture = Fixture()
        _ = try await fixture.change(["\u{E9}", "e\u{301}"], of: .sample())
        #expect(fixture.upstream.changes.first?.tokens.count == 2)
    }

    @Test("Implausible tokens are rejected in their places and not sent to the upstream")
    func implausible() async throws {
        let fixture = Fixture()
        let answer = try await fixture.change(["", "a", "/topics/x", ".."], of: .sample())
        let bad = SubscriptionOutcome.rejected(.invalidToken)
        #expect(self.outcomes(answer) == [bad, .done, bad, bad])
        #expect(fixture.upstream.changes.map(\.tokens) == [["a"]])
        #expect(self.outcomes(try await fixture.change([""], of: .sample())) == [bad])
        #expect(fixture.upstream.changes.count == 1)
    }

    @Test("A key must be allowed to address the topic; a refusal is recorded")
    func topics() async throws {
        let fixture = Fixture()
        let sports = try Principal.sample(topicPrefixes: ["sport"])
        #expect(self.refusal(try await fixture.change(["a"], of: sports))?.code == .forbidden)
        #expect(self.refusal(try await fixture.change(["a"], of: sports, topic: "sport-1")) == nil)
        #expect(fixture.upstream.changes.count == 1)
        let records = try await fixture.records()
        #expect(records.map(\.outcome) == [.rejected, .accepted])
        #expect(records.map(\.code) == ["forbidden", nil])
    }

    @Test("A key with topic prefixes does not see a token's other subscriptions")
    func hiddenTopics() async throws {
        let fixture = Fixture()
        let info = RegistrationInfo(subscriptions: ["sport-1", "news"].map { TopicSubscription(topic: $0) })
        fixture.upstream.answer(RegistrationResult(.success(info), upstreamCode: "200"))
        let answer = await fixture.look(up: "a", of: try .sample(topicPrefixes: ["sport"]))
        #expect(try answer.result.get().subscriptions.map(\.topic) == ["sport-1"])
    }

    @Test("Each device is charged once to the tenant's quota, and devices over it are rejected in their places")
    func limits() async throws {
        let fixture = Fixture()
        let policies = LimitPolicies(tenant: [try .sample(1, per: 10, burst: 3)])
        let principal = try Principal.sample(limits: policies)
        let answer = try await fixture.change(["a", "b", "a", "c", "d"], of: principal)
        let late = Rejection(code: .tenantRateExceeded, retryAfter: 10, limitedBy: .gateway)
        #expect(self.outcomes(answer) == [.done, .done, .done, .done, .rejected(late)])
        #expect(fixture.upstream.changes.map(\.tokens) == [["a", "b", "c"]])
        #expect(answer.quotas.map(\.remaining) == [0])
        let denied = try await fixture.change(["a"], of: principal)
        #expect(self.refusal(denied)?.code == .tenantRateExceeded)
        #expect(self.refusal(denied)?.limit == "tenant")
        #expect(self.refusal(await fixture.look(up: "a", of: principal))?.code == .tenantRateExceeded)
        #expect(fixture.upstream.changes.count == 1)
    }

    @Test("The refusal says which credential is missing")
    func missingCredential() async throws {
        let fixture = Fixture()
        fixture.upstream.answer(SubscriptionResult([.rejected(.upstreamCredentials)], upstreamCode: "x"))
        let principal = try Principal.sample(upstream: .v1)
        let detail = try #require(principal.profile.missingCredential)
        #expect(self.refusal(try await fixture.change(["a"], of: principal))?.detail == detail)
    }

    @Test(
        "A cause shared by all devices becomes one refusal with the longest delay",
        arguments: [
            OutcomeCode.upstreamUnavailable, .upstreamCredentials, .upstreamProtocol, .upstreamInternal,
            .tenantRateExceeded, .invalidField,
        ]
    )
    func commonCause(code: OutcomeCode) async throws {
        let fixture = Fixture()
        fixture.upstream.answer(
            SubscriptionResult(
                [.rejected(Rejection(code: code, retryAfter: 3)), .rejected(Rejection(code: code, retryAfter: 9))],
                upstreamCode: "x"
            ),
            SubscriptionResult([.rejected(code), .done], upstreamCode: "x"),
            SubscriptionResult([.rejected(code), .rejected(.unregistered)], upstreamCode: "x")
        )
        let all = try await fixture.change(["a", "b"], of: .sample())
        #expect(self.refusal(all)?.code == code)
        #expect(self.refusal(all)?.retryAfter == 9)
        #expect(self.refusal(all)?.detail == nil)
        for _ in 0..<2 { #expect(self.outcomes(try await fixture.change(["a", "b"], of: .sample()))?.count == 2) }
    }

    @Test(
        "Rejections of the devices themselves stay with each device",
        arguments: [OutcomeCode.unregistered, .invalidToken]
    )
    func ownCause(code: OutcomeCode) async throws {
        let fixture = Fixture()
        fixture.upstream.answer(SubscriptionResult([.rejected(code), .rejected(code)], upstreamCode: "x"))
        let outcomes = self.outcomes(try await fixture.change(["a", "b"], of: .sample()))
        #expect(outcomes == [.rejected(code), .rejected(code)])
    }

    @Test("An outcome that the upstream leaves out is reported as a protocol error")
    func owed() async throws {
        let fixture = Fixture()
        fixture.upstream.answer(SubscriptionResult([.done], upstreamCode: "200"))
        let answer = try await fixture.change(["a", "b"], of: .sample())
        #expect(self.outcomes(answer) == [.done, .rejected(.upstreamProtocol)])
    }

    @Test("A record holds the caller, the action and the counts, and names topic and tokens only by pseudonyms")
    func audit() async throws {
        let fixture = Fixture()
        fixture.upstream.answer(SubscriptionResult([.done, .rejected(.unregistered)], upstreamCode: "NOT_FOUND"))
        let principal = try Principal.sample()
        _ = try await fixture.change(["token-a", "token-b", "token-a"], of: principal, .unsubscribe)
        _ = await fixture.look(up: "token-a", of: principal)
        let records = try await fixture.records()
        var change = AuditRecord(
            time: .sample,
            tenant: "acme",
            principal: principal.auditName,
            action: "topic.unsubscribe",
            outcome: .partial,
            requestID: "request-1"
        )
        change.tenantUID = principal.profile.uid
        change.method = "POST"
        change.targetKind = "subscription"
        change.targets = records[0].targets
        change.recipients = 3
        change.accepted = 2
        change.code = "unregistered"
        change.upstreamCode = "NOT_FOUND"
        change.results = [nil, "unregistered", nil].map { AuditRecord.TargetResult(code: $0) }
        change.traceID = RequestTrace.sampleID
        #expect(records[0] == change)
        let pseudonym = principal.profile.pseudonymizer.pseudonym(of:)
        #expect(records[0].pseudonyms == ["news", "token-a", "token-b", "token-a"].map(pseudonym))
        #expect(records[1].action == "topic.list")
        #expect(records[1].pseudonyms == [pseudonym("token-a")])
        var dumped = ""
        dump(records, to: &dumped)
        #expect(!dumped.contains("token-a"))
        #expect(!dumped.contains("news"))
    }

    @Test("Devices are counted by outcome")
    func metrics() async throws {
        let fixture = Fixture()
        fixture.upstream.answer(SubscriptionResult([.done, .rejected(.unregistered)], upstreamCode: "x"))
        _ = try await fixture.change(["a", "b", "a"], of: .sample())
        _ = try await fixture.change(["a"], of: .sample(topicPrefixes: ["sport"]), .unsubscribe)
        func total(_ change: String, _ outcome: String) throws -> Int64 {
            let labels = [("tenant", "acme"), ("change", change), ("outcome", outcome)]
            return try fixture.metrics.expectCounter("fcmgw_subscription_changes_total", labels).totalValue
        }
        #expect(try total("subscribe", "accepted") == 2)
        #expect(try total("subscribe", "unregistered") == 1)
        #expect(try total("unsubscribe", "forbidden") == 1)
    }

    // MARK: Strict recording

    @Test("In strict mode, forbidden and rate limited requests are recorded without an intent")
    func refusedInStrictMode() async throws {
        let fixture = Fixture(isStrict: true)
        let policies = LimitPolicies(tenant: [try .sample(1, per: 10, burst: 1)])
        let principal = try Principal.sample(limits: policies)
        try await fixture.audit.whileRunning {
            for _ in 1...2 { _ = try await fixture.change(["a"], of: principal) }
            _ = await fixture.look(up: "a", of: principal)
            _ = try await fixture.change(["a"], of: try .sample(topicPrefixes: ["sport"]))
        }
        let records = fixture.store.current.records.map(\.record).filter { $0.action.hasPrefix("topic.") }
        #expect(records.map(\.outcome) == [.intent, .accepted, .rejected, .rejected, .rejected])
        #expect(fixture.upstream.changes.count == 1)
    }

    @Test("In strict mode, changes and look-ups are recorded before and after, and not made if the audit fails")
    func strict() async throws {
        let fixture = Fixture(isStrict: true)
        let principal = try Principal.sample()
        try await fixture.audit.whileRunning {
            _ = try await fixture.change(["a", "b"], of: principal)
            _ = await fixture.look(up: "a", of: principal)
            let records = fixture.store.current.records.map(\.record)
            #expect(
                records.map(\.action) == ["audit.opened"] + ["topic.subscribe", "topic.list"].flatMap { [$0, $0] }
            )
            #expect(records.map(\.outcome).dropFirst() == [.intent, .accepted, .intent, .accepted])
            #expect(records[1].targets == records[2].targets && records[1].accepted == 0)
            fixture.store.refuse()
            #expect(self.refusal(try await fixture.change(["a"], of: principal))?.code == .auditUnavailable)
            #expect(self.refusal(await fixture.look(up: "a", of: principal))?.code == .auditUnavailable)
            #expect(fixture.upstream.changes.count == 1 && fixture.upstream.lookUps.count == 1)
            fixture.store.refuse(false)
        }
    }
}
