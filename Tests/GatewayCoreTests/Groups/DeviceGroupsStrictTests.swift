import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("DeviceGroups in strict mode", .timeLimit(.minutes(10)))
struct DeviceGroupsStrictTests {
    @Test("A change is recorded before and after, and not made when it can't be recorded before")
    func change() async throws {
        let store = InMemoryAuditStore()
        var configuration = AuditLog.Configuration.sample()
        configuration.mode = .strict
        let audit = AuditLog.sample(store: store, configuration: configuration)
        let upstream = InMemoryGroupUpstream()
        let groups = DeviceGroups(
            store: TestGroupStore(),
            upstream: upstream,
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: audit,
            clock: ManualClock()
        )
        let caller = try Caller.sample()
        try await audit.whileRunning {
            _ = try await groups.put("g", tokens: ["a", "b"], by: caller)
            let records = store.current.records.map(\.record).dropFirst()
            #expect(records.map(\.outcome) == [.intent, .accepted])
            #expect(Set(records.map(\.action)).count == 1)
            #expect(records.map(\.accepted) == [0, 2])
            store.refuse()
            let error = await #expect(throws: Refusal.self) {
                _ = try await groups.put("other", tokens: ["a"], by: caller)
            }
            #expect(error?.code == .auditUnavailable)
            #expect(upstream.members(ofGroup: "other") == nil)
            store.refuse(false)
        }
        #expect(upstream.groupNames.count == 1)
    }

    @Test("There is no intent of what the tenant has no room for")
    func refused() async throws {
        let store = InMemoryAuditStore()
        var configuration = AuditLog.Configuration.sample()
        configuration.mode = .strict
        let audit = AuditLog.sample(store: store, configuration: configuration)
        let groups = DeviceGroups(
            store: TestGroupStore(),
            upstream: InMemoryGroupUpstream(),
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: audit,
            clock: ManualClock()
        )
        let policies = LimitPolicies(tenant: [try .sample(1, per: 10, burst: 1)])
        let caller = try Caller.sample(.sample(limits: policies))
        try await audit.whileRunning {
            _ = try await groups.put("g", tokens: ["a", "b"], by: caller)
            for _ in 1...2 {
                let error = await #expect(throws: Refusal.self) { _ = try await groups.show("g", by: caller) }
                #expect(error?.code == .tenantRateExceeded)
            }
        }
        let records = store.current.records.map(\.record).filter { $0.action.hasPrefix("device_group.") }
        #expect(records.map(\.outcome) == [.intent, .accepted, .rejected, .rejected])
    }
}
