import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("DeviceGroups in strict mode", .timeLimit(.minutes(10)))
struct DeviceGroupsStrictTests {
    @Test("A change is recorded before and after, and not made when it can't be recorded before")
    func change() async throws {
        let store = InMemoryAuditStore()
        var configuration = AuditConfiguration.sample()
        configuration.mode = .strict
        let audit = AuditLog.sample(store: store, configuration: configuration)
        let upstream = InMemoryGroupUpstream()
        let groups = DeviceGroups(
            store: InMemoryGroupStore(),
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
}

@Suite("DeviceGroups and limits", .timeLimit(.minutes(10)))
struct DeviceGroupsLimitTests {
    private let store = InMemoryGroupStore()
    private let groups: DeviceGroups

    init() {
        self.groups = Self.groups(over: self.store, lookUpTimeout: .seconds(600))
    }

    private static func groups(over store: InMemoryGroupStore, lookUpTimeout: Duration) -> DeviceGroups {
        DeviceGroups(
            store: store,
            upstream: InMemoryGroupUpstream(),
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: .sample(store: InMemoryAuditStore()),
            clock: ManualClock(),
            lookUpTimeout: lookUpTimeout
        )
    }

    /// A group with one member, and another that is being removed, under two keys.
    private func saveGroup(of principal: Principal) async throws {
        var group = DeviceGroup(
            tenant: principal.profile.id,
            tenantCreatedAt: principal.profile.tenant.createdAt,
            name: "g",
            upstreamName: "g",
            key: "key-1",
            members: [DeviceGroup.Member("a", .member), DeviceGroup.Member("b", .removing)],
            updatedAt: .sample
        )
        group.version = try await self.store.save(group)
        group.key = "key-2"
        _ = try await self.store.save(group)
    }

    @Test("After a start, groups are known by the keys that the store has")
    func load() async throws {
        let principal = try Principal.sample()
        try await self.saveGroup(of: principal)
        let command = SendCommand.sample(from: principal, to: .tokens(["x", "key-1", "key-2"]))
        #expect(!self.groups.mayBeAddressed(by: command))
        try await self.groups.load()
        #expect(self.groups.mayBeAddressed(by: command))
        let keys = await self.groups.limitKeys(of: command)
        #expect(keys.keys.sorted() == [1, 2])
        #expect(keys[1] == keys[2])
        #expect(keys[1]?.last == LimitKey(principal.profile.pseudonymizer.pseudonym(of: "a")))
        #expect(keys[1]?.count == 2)
        #expect(!self.groups.mayBeAddressed(by: .sample(from: principal, to: .token("a"))))
        #expect(!self.groups.mayBeAddressed(by: .sample(from: try .sample(tenant: "other"), to: .token("key-1"))))
    }

    @Test("A send does not wait for a store that hangs: its group is a device, of members that nobody knows")
    func hungStore() async throws {
        let principal = try Principal.sample()
        try await self.saveGroup(of: principal)
        try await self.groups.load()
        let one = SendCommand.sample(from: principal, to: .notificationKey("key-1"))
        #expect(await self.groups.memberCount(of: one) == 1)
        let timingOut = Self.groups(over: self.store, lookUpTimeout: .milliseconds(1))
        try await timingOut.load()
        self.store.hang()
        let list = SendCommand.sample(from: principal, to: .tokens(["x", "key-1", "key-2"]))
        #expect(await timingOut.limitKeys(of: list).isEmpty)
        #expect(await timingOut.memberCount(of: one) == nil)
        self.store.hang(false)
        #expect(await self.groups.limitKeys(of: list).count == 2)
    }

    @Test("A send whose deadline has passed asks no store")
    func passedDeadline() async throws {
        let principal = try Principal.sample()
        try await self.saveGroup(of: principal)
        try await self.groups.load()
        let late = SendCommand(
            by: Caller(principal: principal, origin: .sample, deadline: .now),
            to: .notificationKey("key-1"),
            message: Message(),
            payloadBytes: 42
        )
        #expect(await self.groups.limitKeys(of: late).isEmpty)
        #expect(await self.groups.memberCount(of: late) == nil)
    }
}
