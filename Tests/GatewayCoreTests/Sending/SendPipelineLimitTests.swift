import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@Suite("SendPipeline and limits")
struct SendPipelineLimitTests {
    private let limits: LimitPolicies

    init() throws {
        self.limits = LimitPolicies(
            tenant: [try .sample(100, per: 10, burst: 100)],
            device: [try .sample(1, per: 10, burst: 2)],
            deviceCollapsible: [try .sample(1, per: 100, burst: 1)],
            topic: [try .sample(1, per: 5, burst: 1)]
        )
    }

    private static func limited(_ seconds: Int) -> RecipientOutcome {
        .rejected(Rejection(code: .deviceRateExceeded, retryAfter: seconds, limitedBy: .gateway))
    }

    @Test("A recipient over its limit is refused with a Retry-After and without an upstream call")
    func single() async throws {
        let fixture = PipelineFixture()
        let command = SendCommand.sample(from: try .sample(limits: self.limits), to: .token("a"))
        for _ in 0..<2 { _ = await fixture.pipeline.send(command) }
        let outcome = await fixture.pipeline.send(command)
        let refusal = Refusal(.deviceRateExceeded, retryAfter: 10, limitedBy: .gateway, limit: "device")
        #expect(outcome.result.answer == .refused(refusal))
        #expect(outcome.quotas.map(\.remaining) == [98])
        #expect(fixture.upstream.calls.count == 2)
        fixture.clock.advance(by: .seconds(10))
        #expect(
            await fixture.pipeline.send(command).result.answer
                == .recipients([.accepted(Acceptance(messageID: "fcm-1"))])
        )
        let records = try await fixture.records()
        #expect(records.map(\.outcome) == [.accepted, .accepted, .rejected, .accepted])
        #expect(records.map(\.code) == [nil, nil, "device_rate_exceeded", nil])
        #expect(records.map(\.upstreamCode) == ["200", "200", nil, "200"])
    }

    @Test("A list is sent without the recipients over their limit, and each outcome keeps its recipient's place")
    func partial() async throws {
        let principal = try Principal.sample(limits: self.limits)
        let fixture = PipelineFixture { call in
            guard case .tokens(let tokens) = call.target else { return ScriptedUpstream.accepting(call) }
            let outcomes = tokens.map { token -> RecipientOutcome in
                token == "gone" ? .rejected(.unregistered) : .accepted(Acceptance(messageID: "for \(token)"))
            }
            return SendResult(outcomes, upstreamCode: "200")
        }
        _ = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["busy", "busy"])))
        let tokens = ["busy", "a", "gone", "busy", "b", "a", "a"]
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: .tokens(tokens)))
        #expect(
            outcome.result.answer
                == .recipients([
                    Self.limited(10), .accepted(Acceptance(messageID: "for a")), .rejected(.unregistered),
                    Self.limited(10), .accepted(Acceptance(messageID: "for b")),
                    .accepted(Acceptance(messageID: "for a")), Self.limited(10),
                ])
        )
        #expect(fixture.upstream.calls.last?.target == .tokens(["a", "gone", "b", "a"]))
        #expect(outcome.quotas.map(\.remaining) == [100 - 2 - 4])
        let record = try #require(try await fixture.records().last)
        #expect((record.outcome, record.recipients, record.accepted) == (.partial, 7, 3))
        #expect(record.code == "device_rate_exceeded")
        #expect(record.pseudonyms == tokens.map(principal.profile.pseudonymizer.pseudonym(of:)))
        for (outcome, count) in [("accepted", 5), ("device_rate_exceeded", 3), ("unregistered", 1)] {
            let labels = [("tenant", "acme"), ("kind", "tokens"), ("outcome", outcome)]
            #expect(fixture.metrics.counterTotal(label: "fcmgw_messages_total", dimensions: labels) == Int64(count))
        }
    }

    @Test("A list of installations is also admitted in part")
    func partialInstallations() async throws {
        let principal = try Principal.sample(limits: self.limits)
        let fixture = PipelineFixture()
        _ = await fixture.pipeline.send(.sample(from: principal, to: .installations(["busy", "busy"])))
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: .installations(["busy", "a"])))
        #expect(outcome.result.answer == .recipients([Self.limited(10), .accepted(Acceptance(messageID: "fcm-1"))]))
        #expect(fixture.upstream.calls.last?.target == .installations(["a"]))
    }

    @Test("If the rest of a list fails as a whole, the answer still has one outcome per recipient")
    func partialAndFailed() async throws {
        let principal = try Principal.sample(limits: self.limits)
        let fixture = PipelineFixture { _ in
            SendResult(refused: .upstreamUnavailable, retryAfter: 9, upstreamCode: "503")
        }
        _ = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["busy", "busy"])))
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["a", "busy", "b"])))
        let failed = RecipientOutcome.rejected(Rejection(code: .upstreamUnavailable, retryAfter: 9))
        #expect(outcome.result.answer == .recipients([failed, Self.limited(10), failed]))
        let record = try #require(try await fixture.records().last)
        #expect((record.outcome, record.code, record.upstreamCode) == (.rejected, "upstream_unavailable", "503"))
    }

    @Test("A credential refusal has a detail if the tenant's credential is missing", arguments: UpstreamKind.allCases)
    func missingCredential(upstream: UpstreamKind) async throws {
        let fixture = PipelineFixture { _ in SendResult(refused: .upstreamCredentials, upstreamCode: "x") }
        // The sample has a server key and nothing else.
        let principal = try Principal.sample(upstream: upstream)
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("a")))
        let detail = principal.profile.missingCredential
        #expect((detail == nil) == (upstream == .legacy))
        #expect(outcome.result.answer == .refused(Refusal(.upstreamCredentials, detail)))
    }

    @Test("A condition is charged once to each topic that it names")
    func condition() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample(limits: self.limits)
        let condition = try Target.condition(parsing: "'a' in topics && ('b' in topics || 'a' in topics)")
        guard
            await fixture.pipeline.send(.sample(from: principal, to: condition)).result.code == nil
        else {
            Issue.record("A repeated topic counted twice")
            return
        }
        for topic in ["a", "b"] {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: try .topic(named: topic)))
            let refusal = Refusal(.topicRateExceeded, retryAfter: 5, limitedBy: .gateway, limit: "topic")
            #expect(outcome.result.answer == .refused(refusal))
        }
    }

    @Test("A dry run calls the upstream and is charged only to the tenant")
    func dryRun() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample(limits: self.limits)
        var message = Message()
        message.dryRun = true
        message.collapseKey = "score"
        for count in 1...10 {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("a"), message: message))
            #expect(outcome.result.answer == .recipients([.accepted(Acceptance(messageID: "fcm-1"))]))
            #expect(outcome.quotas.map(\.remaining) == [100 - count])
        }
        let topic = try Target.condition(parsing: "'a' in topics && 'b' in topics")
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: topic, message: message))
        #expect(outcome.quotas.map(\.remaining) == [89])
        #expect(fixture.limiter.bucketCount == 1)
        #expect(fixture.upstream.calls.count == 11)
    }

    @Test("Decisions are counted by scope")
    func decisions() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample(limits: self.limits)
        _ = await fixture.pipeline.send(.sample(from: principal, to: .token("a")))
        _ = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["a", "a", "b"])))
        for (scope, decision, count) in [("tenant", "admitted", 3), ("device", "denied", 1)] {
            let labels = [("scope", scope), ("decision", decision), ("source", "memory")]
            let total = fixture.metrics.counterTotal(label: "fcmgw_limiter_decisions_total", dimensions: labels)
            #expect(total == Int64(count))
        }
    }
}
