import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@Suite("SendPipeline")
struct SendPipelineTests {
    // MARK: Passing

    @Test("A message to one recipient has one outcome, under an id of its own")
    func single() async throws {
        let fixture = PipelineFixture()
        let command = SendCommand.sample(from: try .sample(), to: .token("token"))
        let outcome = await fixture.pipeline.send(command)
        #expect(outcome.answer == .single(.accepted(Acceptance(messageID: "fcm-1"))))
        #expect(outcome.quotas.map(\.remaining) == [8_999])
        #expect(outcome.messageID.wholeMatch(of: /[0-9a-f-]{36}/) != nil)
        let other = await fixture.pipeline.send(command)
        #expect(other.messageID != outcome.messageID)
    }

    @Test("The upstream gets the message, the target and the deadline as they came")
    func handedOn() async throws {
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
            #expect(call.message == message)
            #expect(call.deadline == command.deadline)
            #expect(call.profile === command.principal.profile)
        }
        #expect(fixture.upstream.calls.count == targets.count)
    }

    @Test("A list has one outcome for each recipient in order, even a list of one")
    func list() async throws {
        let answers: [RecipientOutcome] = [
            .rejected(.unregistered), .accepted(Acceptance(messageID: "2", replacementToken: "new")),
            .rejected(.invalidToken),
        ]
        let fixture = PipelineFixture { call in
            UpstreamResult(answer: .recipients(Array(answers.prefix(call.target.recipientCount))), upstreamCode: "200")
        }
        let three = await fixture.pipeline.send(.sample(from: try .sample(), to: .tokens(["a", "b", "c"])))
        #expect(three.answer == .multiple(answers))
        let one = await fixture.pipeline.send(.sample(from: try .sample(), to: .tokens(["a"])))
        #expect(one.answer == .multiple([.rejected(.unregistered)]))
    }

    @Test("A group's counts are handed on")
    func group() async throws {
        let counts = GroupOutcome(success: 2, failure: 1, failedTokens: ["c"])
        let fixture = PipelineFixture { _ in UpstreamResult(answer: .group(counts), upstreamCode: "200") }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .notificationKey("group")))
        #expect(outcome.answer == .group(counts))
    }

    // MARK: Refused before anything is spent

    private func expectForbidden(_ target: Target, by principal: Principal) async throws {
        let fixture = PipelineFixture()
        let outcome = await fixture.pipeline.send(.sample(from: principal, to: target))
        guard case .refused(let refusal) = outcome.answer else {
            Issue.record("\(outcome.answer)")
            return
        }
        #expect(refusal.code == .forbidden)
        #expect(refusal.detail != nil)
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        let record = try await fixture.record()
        #expect((record.outcome, record.code) == (.rejected, "forbidden"))
    }

    @Test("A key without the scope may not send, and the attempt is recorded")
    func scopeMissing() async throws {
        try await self.expectForbidden(
            .token("a"),
            by: .sample(scopes: Set(Scope.allCases).subtracting([.sendMessages]))
        )
    }

    @Test("A key may address only topics with its prefixes, in conditions too")
    func topicPrefixes() async throws {
        let principal = try Principal.sample(topicPrefixes: ["news-", "sport"])
        try await self.expectForbidden(.topic(named: "weather"), by: principal)
        try await self.expectForbidden(
            .condition(parsing: "'news-a' in topics && 'weather' in topics"),
            by: principal
        )
        let fixture = PipelineFixture()
        for target in [
            try Target.topic(named: "news-a"), try .condition(parsing: "'news-a' in topics || 'sports' in topics"),
            .token("a"),
        ] {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: target))
            #expect(outcome.answer == .single(.accepted(Acceptance(messageID: "fcm-1"))))
        }
    }

    @Test("What the upstream has no form for is refused with its reason, and costs nothing")
    func objection() async throws {
        let fixture = PipelineFixture()
        fixture.upstream.refuse(with: Refusal(.invalidTarget, "Only HTTP v1 knows these", field: "fid"))
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .installation("fid")))
        let refusal = Refusal(.invalidTarget, "Only HTTP v1 knows these", field: "fid")
        #expect(outcome.answer == .refused(refusal))
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        #expect(try await fixture.record().code == "invalid_target")
    }

    @Test("Without a place in the audit nothing is sent or spent")
    func auditFull() async throws {
        let fixture = PipelineFixture(queueCapacity: 1)
        let place = try fixture.audit.place()
        let command = SendCommand.sample(from: try .sample(), to: .tokens(["a", "b"]))
        let refused = await fixture.pipeline.send(command)
        #expect(refused.answer == .refused(Refusal(.auditUnavailable)))
        #expect(fixture.upstream.calls.isEmpty)
        #expect(fixture.limiter.bucketCount == 0)
        _ = consume place
        guard case .multiple = await fixture.pipeline.send(command).answer else {
            Issue.record("The place was free again")
            return
        }
        #expect(
            fixture.metrics.counterTotal(
                label: "fcmgw_messages_total",
                dimensions: [("tenant", "acme"), ("kind", "tokens"), ("outcome", "audit_unavailable")]
            ) == 2
        )
    }

    // MARK: An upstream that fails

    @Test(
        "A call that failed as a whole is one refusal, with the upstream's delay where a repeat can help",
        arguments: [
            (.upstreamUnavailable, 30, nil), (.upstreamInternal, 30, nil), (.upstreamCredentials, nil, nil),
            (.upstreamProtocol, nil, nil), (.outcomeUnknown, nil, nil), (.deviceRateExceeded, 30, .fcm),
            (.topicRateExceeded, 30, .fcm),
        ] as [(OutcomeCode, Int?, Rejection.LimitSource?)]
    )
    func failedAsAWhole(code: OutcomeCode, retryAfter: Int?, limitedBy: Rejection.LimitSource?) async throws {
        for target in [Target.token("a"), .tokens(["a", "b"]), try .topic(named: "news")] {
            let fixture = PipelineFixture { _ in
                UpstreamResult(answer: .failed(code), retryAfter: 30, upstreamCode: "503")
            }
            let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: target))
            let refusal = Refusal(code, retryAfter: retryAfter, limitedBy: limitedBy)
            #expect(outcome.answer == .refused(refusal))
            #expect(outcome.quotas.count == 1)
            let record = try await fixture.record()
            #expect((record.outcome, record.code, record.upstreamCode) == (.rejected, code.rawValue, "503"))
        }
    }

    @Test("The upstream's delay goes to the recipients that can be repeated, unless they have one of their own")
    func delays() async throws {
        let fixture = PipelineFixture { _ in
            UpstreamResult(
                answer: .recipients([
                    .rejected(.upstreamUnavailable), .rejected(.unregistered),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 7)), .rejected(.topicRateExceeded),
                    .accepted(Acceptance(messageID: "5")),
                ]),
                retryAfter: 30,
                upstreamCode: "200"
            )
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .tokens(["a", "b", "c", "d", "e"])))
        #expect(
            outcome.answer
                == .multiple([
                    .rejected(Rejection(code: .upstreamUnavailable, retryAfter: 30)), .rejected(.unregistered),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 7, limitedBy: .fcm)),
                    .rejected(Rejection(code: .topicRateExceeded, retryAfter: 30, limitedBy: .fcm)),
                    .accepted(Acceptance(messageID: "5")),
                ])
        )
    }

    @Test("FCM's own limit on one recipient says so", arguments: [OutcomeCode.deviceRateExceeded, .topicRateExceeded])
    func limitedByFCM(code: OutcomeCode) async throws {
        let fixture = PipelineFixture { _ in
            UpstreamResult(answer: .recipients([.rejected(code)]), upstreamCode: "200")
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .token("a")))
        #expect(outcome.answer == .single(.rejected(Rejection(code: code, limitedBy: .fcm))))
    }

    @Test("What legacy calls a failed call stays with its refusal, and with the recipients that share it")
    func legacyName() async throws {
        let fixture = PipelineFixture { _ in
            UpstreamResult(answer: .failed(.invalidField), upstreamCode: "InvalidTtl", legacyName: .invalidTTL)
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .token("a")))
        #expect(outcome.answer == .refused(Refusal(.invalidField, legacyName: .invalidTTL)))
        guard case .refused(let refusal) = outcome.answer else { return }
        #expect(refusal.rejection == Rejection(code: .invalidField, legacyName: .invalidTTL))

        let once = LimitPolicies(device: [try .sample(1, per: 60, burst: 1)])
        let principal = try Principal.sample(limits: once)
        _ = await fixture.pipeline.send(.sample(from: principal, to: .token("b")))
        let some = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["c", "b"])))
        #expect(
            some.answer
                == .multiple([
                    .rejected(Rejection(code: .invalidField, legacyName: .invalidTTL)),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 60, limitedBy: .gateway)),
                ])
        )
    }

    @Test("An answer that is passed through reaches the caller of the pipeline")
    func passThrough() async throws {
        let reply = V1ReplyWriter.groupAcceptance
        let fixture = PipelineFixture { _ in
            UpstreamResult(
                answer: .recipients([.rejected(.unregistered)]),
                upstreamCode: "UNREGISTERED",
                passThrough: .answer(reply)
            )
        }
        let outcome = await fixture.pipeline.send(.sample(from: try .sample(), to: .token("a")))
        #expect(outcome.passThrough?.reply == reply)
        #expect(outcome.answer == .single(.rejected(.unregistered)))
    }

    @Test("A preview tells refusal and quotas, and neither sends, spends nor records")
    func preview() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample(topicPrefixes: ["sport"])
        let device = SendCommand.sample(from: principal, to: .token("a"))
        let first = await fixture.pipeline.preview(device)
        #expect(first.refusal == nil)
        #expect(first.limits == (await fixture.pipeline.preview(device)).limits)
        #expect(first.limits.recipients.map { $0.map(\.scope) } == [[.device, .device]])
        #expect(first.limits.recipients.map { $0.map(\.quota.remaining) } == [[60, 1_000]])
        let topic = await fixture.pipeline.preview(.sample(from: principal, to: try .topic(named: "news")))
        #expect(topic.refusal?.code == .forbidden)
        #expect(fixture.upstream.calls.isEmpty)
        #expect(try await fixture.records().isEmpty)
    }
}
