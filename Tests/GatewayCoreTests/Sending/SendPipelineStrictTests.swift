import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("SendPipeline in strict mode", .timeLimit(.minutes(10)))
struct SendPipelineStrictTests {
    private func refusal(_ outcome: SendOutcome) -> OutcomeCode? {
        if case .refused(let refusal) = outcome.result.answer { refusal.code } else { nil }
    }

    @Test("The intent is stored before FCM is called, and the outcome before the caller is answered")
    func order() async throws {
        let store = Observed<InMemoryAuditStore?>(nil)
        let fixture = PipelineFixture(isStrict: true) { call in
            let records = store.current?.current.records.map(\.record) ?? []
            #expect(records.last?.outcome == .intent && records.last?.action == "message.send")
            return ScriptedUpstream.accepting(call)
        }
        store.change { $0 = fixture.store }
        let principal = try Principal.sample()
        try await fixture.audit.whileRunning {
            for number in 1...20 {
                let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("t\(number)")))
                let records = fixture.store.current.records(of: "message.send")
                #expect(records.count == number * 2)
                #expect(records.suffix(2).map(\.outcome) == [.intent, .accepted])
                #expect(records.suffix(2).map(\.messageID) == [outcome.messageID, outcome.messageID])
                #expect(records.suffix(2).map(\.accepted) == [0, 1])
                let pseudonym = principal.profile.pseudonymizer.pseudonym(of: "t\(number)")
                #expect(records.suffix(2).map(\.pseudonyms) == [[pseudonym], [pseudonym]])
            }
        }
        #expect(fixture.upstream.calls.count == 20)
        var intents = AuditIntents()
        for record in fixture.store.current.records { intents.take(record) }
        #expect(intents.withoutOutcome.isEmpty)
    }

    @Test("If the intent can't be stored, nothing is sent and no record of it is stored later")
    func refusedIntent() async throws {
        let fixture = PipelineFixture(isStrict: true, spool: InMemorySpoolFile())
        let principal = try Principal.sample()
        try await fixture.audit.whileRunning {
            _ = await fixture.pipeline.send(.sample(from: principal, to: .token("before")))
            fixture.store.refuse()
            for _ in 1...3 {
                let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("refused")))
                #expect(self.refusal(outcome) == .auditUnavailable)
            }
            fixture.store.refuse(false)
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("after")))
            #expect(self.refusal(outcome) == nil)
        }
        #expect(fixture.upstream.calls.count == 2)
        let outcomes = fixture.store.current.records(of: "message.send").map(\.outcome)
        #expect(outcomes == [.intent, .accepted, .intent, .accepted])
    }

    @Test("If the store hangs, a send is refused after the commit timeout, and its place in the queue is freed")
    func hangingStore() async throws {
        let fixture = PipelineFixture(queueCapacity: 3, isStrict: true, commitTimeout: .milliseconds(20))
        let command = SendCommand.sample(from: try .sample(), to: .token("a"))
        try await fixture.audit.whileRunning {
            try await fixture.store.wait { $0.batches.count == 1 }
            fixture.store.hang()
            // Sends until the store holds one intent, then sends one more behind it.
            repeat {
                #expect(self.refusal(await fixture.pipeline.send(command)) == .auditUnavailable)
            } while fixture.store.current.hanging == 0
            #expect(self.refusal(await fixture.pipeline.send(command)) == .auditUnavailable)
            #expect(fixture.upstream.calls.isEmpty)
            #expect(fixture.audit.hasPlace)
            fixture.store.hang(false)
        }
        // The intent that the store held is recorded, and so is the rejection.
        let records = fixture.store.current.records(of: "message.send")
        #expect(records.map(\.outcome) == [.intent, .rejected])
        #expect(records.last?.code == "audit_unavailable")
        #expect(records.first?.messageID == records.last?.messageID)
    }

    @Test("If the outcome can't be committed, the answer reports FCM's result and the record is stored later")
    func lateOutcome() async throws {
        let store = Observed<InMemoryAuditStore?>(nil)
        let fixture = PipelineFixture(isStrict: true, spool: InMemorySpoolFile()) { call in
            store.current?.refuse()
            return ScriptedUpstream.accepting(call)
        }
        store.change { $0 = fixture.store }
        let principal = try Principal.sample()
        try await fixture.audit.whileRunning {
            let outcome = await fixture.pipeline.send(.sample(from: principal, to: .token("a")))
            #expect(self.refusal(outcome) == nil)
            #expect(fixture.store.current.records(of: "message.send").map(\.outcome) == [.intent])
            var intents = AuditIntents()
            for record in fixture.store.current.records { intents.take(record) }
            #expect(intents.withoutOutcome.map(\.record.messageID) == [outcome.messageID])
            fixture.store.refuse(false)
        }
        let records = fixture.store.current.records(of: "message.send")
        #expect(records.map(\.outcome) == [.intent, .accepted])
    }

    @Test("A wait for a record ends after the commit timeout if the store fails, and the record is stored later")
    func givingUp() async throws {
        let store = InMemoryAuditStore()
        let log = AuditLog.sample(store: store, configuration: .sample(commitTimeout: .milliseconds(20)))
        try await log.whileRunning {
            try await store.wait { $0.batches.count == 1 }
            store.refuse()
            try log.place().fill(.sample("late"))
            // The store refuses records until this wait has ended.
            #expect(!(await log.settle()))
            store.refuse(false)
        }
        #expect(store.actions == ["audit.opened", "late", "audit.closed"])
    }
}
