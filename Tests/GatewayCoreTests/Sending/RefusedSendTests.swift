import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("The audit of refused sends", .timeLimit(.minutes(10)))
struct RefusedSendTests {
    @Test("A list refused by the tenant's limit is recorded without targets, one refused by device limits with them")
    func counts() async throws {
        let fixture = PipelineFixture()
        let once = [try RatePolicy.sample(1, per: 600, burst: 1)]
        let full = try Principal.sample(limits: LimitPolicies(tenant: once))
        let spent = try Principal.sample(tenant: "spent", limits: LimitPolicies(device: once))
        for principal in [full, spent] {
            for _ in 1...3 { _ = await fixture.pipeline.send(.sample(from: principal, to: .tokens(["a", "a"]))) }
        }
        let records = try await fixture.records().filter { $0.outcome == .rejected }
        #expect(
            records.map(\.code) == ["tenant_rate_exceeded", "tenant_rate_exceeded"] + [
                "device_rate_exceeded", "device_rate_exceeded",
            ]
        )
        #expect(records.map(\.recipients) == [2, 2, 2, 2])
        #expect(records.map(\.targets.count) == [0, 0, 32, 32])
        #expect(fixture.upstream.calls.count == 2)
    }

    @Test("Refused sends beyond the budget share the id of their summary, and an admitted send has its own")
    func ids() async throws {
        let fixture = PipelineFixture()
        let once = [try RatePolicy.sample(1, per: 600, burst: 1)]
        let principal = try Principal.sample(limits: LimitPolicies(device: once))
        let tenant = principal.profile.uid
        var refused = AuditRecord.sample("message.send")
        (refused.tenant, refused.tenantUID, refused.principal) = ("shop", tenant, "key:a")
        (refused.outcome, refused.code) = (.rejected, "device_rate_exceeded")
        refused.targets = Array(repeating: 1, count: 2 << 20)
        #expect(try fixture.audit.place(of: tenant).fill(refusal: refused) == nil)
        _ = await fixture.pipeline.send(.sample(from: principal, to: .token("a")))
        var ids: Set<String> = []
        for _ in 1...5 { ids.insert(await fixture.pipeline.send(.sample(from: principal, to: .token("a"))).messageID) }
        let id = try #require(ids.first)
        #expect(ids.count == 1)
        let sent = await fixture.pipeline.send(.sample(from: principal, to: .token("b")))
        let records = try await fixture.records()
        #expect(records.count { $0.messageID == id } == 1)
        #expect(records.first { $0.messageID == id }?.recipients == 5)
        #expect(records.first { $0.messageID == sent.messageID }?.outcome == .accepted)
    }
}
