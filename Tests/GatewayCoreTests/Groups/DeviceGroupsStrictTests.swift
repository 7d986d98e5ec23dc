import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("DeviceGroups in strict mode", .timeLimit(.minutes(10)))
struct DeviceGroupsStrictTests {
    private let store = InMemoryAuditStore()
    private let upstream = InMemoryGroupUpstream()
    private let audit: AuditLog
    private let groups: DeviceGroups

    init() {
        var configuration = AuditLog.Configuration.sample()
        configuration.mode = .strict
        self.audit = AuditLog.sample(store: self.store, configuration: configuration)
        self.groups = DeviceGroups(
            store: TestGroupStore(),
            upstream: self.upstream,
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: self.audit,
            clock: ManualClock()
        )
    }

    @Test("A change is recorded before and after it, and is not made if the intent can't be recorded")
    func change() async throws {
        let caller = try Caller.sample()
        try await self.audit.whileRunning {
            _ = try await self.groups.put("g", tokens: ["a", "b"], by: caller)
            let records = self.store.current.records.map(\.record).dropFirst()
            #expect(records.map(\.outcome) == [.intent, .accepted])
            #expect(Set(records.map(\.action)).count == 1)
            #expect(records.map(\.accepted) == [0, 2])
            self.store.refuse()
            let error = await #expect(throws: Refusal.self) {
                _ = try await self.groups.put("other", tokens: ["a"], by: caller)
            }
            #expect(error?.code == .auditUnavailable)
            #expect(self.upstream.members(ofGroup: "other") == nil)
            self.store.refuse(false)
        }
        #expect(self.upstream.groupNames.count == 1)
    }

    @Test("A request over the tenant's rate limit is recorded as rejected, without an intent")
    func refused() async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 10, burst: 1)])
        let caller = try Caller.sample(.sample(limits: policies))
        try await self.audit.whileRunning {
            _ = try await self.groups.put("g", tokens: ["a", "b"], by: caller)
            for _ in 1...2 {
                let error = await #expect(throws: Refusal.self) { _ = try await self.groups.show("g", by: caller) }
                #expect(error?.code == .tenantRateExceeded)
            }
        }
        let records = self.store.current.records.map(\.record).filter { $0.action.hasPrefix("device_group.") }
        #expect(records.map(\.outcome) == [.intent, .accepted, .rejected, .rejected])
    }
}
