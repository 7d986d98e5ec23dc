import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@Suite("SendPipeline and audit", .timeLimit(.minutes(10)))
struct SendPipelineAuditTests {
    @Test("The record of a single message holds its FCM id, and the record of a list the id of each recipient")
    func messageIDs() async throws {
        let fixture = PipelineFixture()
        let principal = try Principal.sample()
        for target in [Target.token("a"), .tokens(["a"]), .tokens(["a", "b"]), try .topic(named: "news")] {
            _ = await fixture.pipeline.send(.sample(from: principal, to: target))
        }
        let records = try await fixture.records()
        #expect(records.map(\.fcmMessageID) == ["fcm-1", "fcm-1", nil, "fcm-1"])
        #expect(records.map { $0.results.map(\.fcmMessageID) } == [[], ["fcm-1"], ["fcm-1", "fcm-2"], []])
        #expect(records.map(\.outcome) == [.accepted, .accepted, .accepted, .accepted])
        #expect(records.map(\.targetKind) == ["token", "tokens", "tokens", "topic"])
    }

    @Test("A condition is recorded with each of its topics once, a group with its counts")
    func topicsAndGroups() async throws {
        let fixture = PipelineFixture { call in
            guard case .notificationKey = call.target else { return ScriptedUpstream.accepting(call) }
            let counts = GroupOutcome(success: 2, failure: 3, failedTokens: ["secret-member"])
            return SendResult(.group(counts), upstreamCode: "200")
        }
        let principal = try Principal.sample()
        let condition = try Target.condition(parsing: "'a' in topics && ('b' in topics || 'a' in topics)")
        _ = await fixture.pipeline.send(.sample(from: principal, to: condition))
        _ = await fixture.pipeline.send(.sample(from: principal, to: .notificationKey("group")))
        let records = try await fixture.records()
        let pseudonymizer = principal.profile.pseudonymizer
        #expect(records.map(\.pseudonyms) == [["a", "b"], ["group"]].map { $0.map(pseudonymizer.pseudonym(of:)) })
        #expect(records.map(\.recipients) == [1, 5])
        #expect(records.map(\.accepted) == [1, 2])
        #expect(records.map(\.outcome) == [.accepted, .partial])
    }

    @Test("A send is recorded even if its caller is cancelled during the upstream call")
    func cancelledCaller() async throws {
        let isUnderWay = Observed(false)
        let never = Observed(false)
        let fixture = PipelineFixture { _ in
            isUnderWay.change { $0 = true }
            try? await never.wait { $0 }
            return SendResult(refused: .outcomeUnknown, upstreamCode: "cancelled")
        }
        let command = SendCommand.sample(from: try .sample(), to: .token("a"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = await fixture.pipeline.send(command) }
            try await isUnderWay.wait { $0 }
            group.cancelAll()
        }
        let record = try await fixture.record()
        #expect((record.outcome, record.code) == (.rejected, "outcome_unknown"))
        #expect(fixture.upstream.calls.count == 1)
    }
}
