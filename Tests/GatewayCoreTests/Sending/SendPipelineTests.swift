import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@Suite("SendPipeline")
struct SendPipelineTests {
    // MARK: Passing

    @Test("The upstream receives the command's message, target, deadline and profile unchanged")
    func delivered() async throws {
        let fixture = PipelineFixture()
        var message = Message()
        message.data = [DataEntry(key: "score", value: "3x1")]
        message.collapseKey = "score"
        let targets: [Target] = [
            .token("a"), .tokens(["a", "b", "a"]), try .topic(named: "news"),
            try .condition(parsing: "'a' in topics || 'b' in topics"), .notificationKey("group"), .installation("fid"),
            .installations(["fid", "fid 2"]),
        ]
        for target in targets {
            let command = SendCommand.sample(from: try .sample(), to: target, message: message)
            _ = await fixture.pipeline.send(command)
            let call = try #require(fixture.upstream.calls.last)
            #expect(call.target == target)
            #expect(call.command.message == message)
            #expect(call.deadline == command.deadline)
            #expect(call.profile === command.principal.profile)
        }
        #expect(fixture.upstream.calls.count == targets.count)
    }

    // MARK: Refused before anything is spent

    private func expectForbidden(_ target: Target, by principal: Principal) async throws {
        let fixture = PipelineFixture()
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: target))
        guard case .refused(let refusal) = outcome.result.answer else {
            Issue.record("\(outcome.result.answer)")
            return
        }
        #expect(refusal.code == .forbidden)
        #expect(refusal.detail != nil)
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        let record = try await fixture.record()
        #expect((record.outcome, record.code) == (.rejected, "forbidden"))
    }

    @Test("A key may address only topics with its prefixes, in conditions too")
    func topicPrefixes() async throws {
        let principal = try Principal.sample(topicPrefixes: ["news-", "sport"])
        try await self.expectForbidden(.topic(named: "weather"), by: principal)
        try await self.expectForbidden(.condition(parsing: "'news-a' in topics && 'weather' in topics"), by: principal)
        let fixture = PipelineFixture()
        for target in [
            try Target.topic(named: "news-a"), try .condition(parsing: "'news-a' in topics || 'sports' in topics"),
            .token("a"),
        ] {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: target))
            #expect(outcome.result.answer == .recipients([.accepted(Acceptance(messageID: "fcm-1"))]))
        }
    }

    @Test("A send that the upstream can't express is refused with its reason and charged to no limit")
    func withoutForm() async throws {
        let fixture = PipelineFixture()
        let refusal = Refusal(.invalidTarget, "Only HTTP v1 knows these", field: "fid")
        fixture.upstream.refuse(with: refusal)
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .installation("fid")))
        #expect(outcome.result.answer == .refused(refusal))
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        #expect(try await fixture.record().code == "invalid_target")
    }

    @Test("If the audit queue is full, nothing is sent or charged")
    func auditFull() async throws {
        let fixture = PipelineFixture(queueCapacity: 1)
        let place = try fixture.audit.place()
        let command = SendCommand.sample(from: try .sample(), to: .tokens(["a", "b"]))
        let refused = await fixture.pipeline.send(command)
        #expect(refused.result.answer == .refused(Refusal(.auditUnavailable)))
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        _ = consume place
        guard case .recipients = await fixture.pipeline.send(command).result.answer else {
            Issue.record("The place was free again")
            return
        }
        let labels = [("tenant", "acme"), ("kind", "tokens"), ("outcome", "audit_unavailable")]
        #expect(fixture.metrics.counterTotal(label: "fcmgw_messages_total", dimensions: labels) == 2)
    }

    // MARK: An upstream that fails

    @Test("The upstream's delay applies to retryable recipients without a delay of their own")
    func delays() async throws {
        let fixture = PipelineFixture { _ in
            SendResult(
                [
                    .rejected(.upstreamUnavailable), .rejected(.unregistered),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 7)), .rejected(.topicRateExceeded),
                    .accepted(Acceptance(messageID: "5")),
                ],
                retryAfter: 30,
                upstreamCode: "200"
            )
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .tokens(["a", "b", "c", "d", "e"])))
        #expect(
            outcome.result.answer
                == .recipients([
                    .rejected(Rejection(code: .upstreamUnavailable, retryAfter: 30)), .rejected(.unregistered),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 7, limitedBy: .fcm)),
                    .rejected(Rejection(code: .topicRateExceeded, retryAfter: 30, limitedBy: .fcm)),
                    .accepted(Acceptance(messageID: "5")),
                ])
        )
    }

    @Test("A refusal keeps its legacy error name, and so do the recipients that it covers")
    func legacyName() async throws {
        let fixture = PipelineFixture { _ in
            SendResult(refused: .invalidField, upstreamCode: "InvalidTtl", legacyName: .invalidTTL)
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .token("a")))
        #expect(outcome.result.answer == .refused(Refusal(.invalidField, legacyName: .invalidTTL)))
        guard case .refused(let refusal) = outcome.result.answer else { return }
        #expect(refusal.rejection == Rejection(code: .invalidField, legacyName: .invalidTTL))

        let once = LimitPolicies(device: [try .sample(1, per: 60, burst: 1)])
        let principal = try Principal.sample(limits: once)
        _ = await fixture.pipeline.send(.sample(from: principal, to: .token("b")))
        let some = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["c", "b"])))
        #expect(
            some.result.answer
                == .recipients([
                    .rejected(Rejection(code: .invalidField, legacyName: .invalidTTL)),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 60, limitedBy: .gateway)),
                ])
        )
    }

    @Test("A preview returns refusal and quotas without sending, charging or recording")
    func preview() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample(topicPrefixes: ["sport"])
        let device = SendCommand.sample(from: principal, to: .token("a"))
        let first = try await fixture.pipeline.preview(device, maxRequests: 1)
        #expect(first.refusal == nil)
        #expect(first.limits == (try await fixture.pipeline.preview(device, maxRequests: 1)).limits)
        #expect(first.limits.recipients.map { $0.map(\.scope) } == [[.device, .device]])
        #expect(first.limits.recipients.map { $0.map(\.quota.remaining) } == [[60, 1_000]])
        let topic = try await fixture.pipeline.preview(
            .sample(from: principal, to: .topic(named: "news")),
            maxRequests: 1
        )
        #expect(topic.refusal?.code == .forbidden)
        #expect(fixture.upstream.calls.isEmpty)
        #expect(try await fixture.records().isEmpty)
    }
}
