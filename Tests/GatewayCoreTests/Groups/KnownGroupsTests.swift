import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

/// Device groups as sends see them, with a store that counts look-ups and a monotonic clock that tests advance.
@Suite("KnownGroups", .timeLimit(.minutes(10)))
struct KnownGroupsTests {
    private let store = TestGroupStore()
    private let time = Observed(Uptime.now)
    private let audit = AuditLog.sample(store: TestDatabase().auditStore)

    /// A replica's groups; the timeout bounds each wait for the store.
    private func groups(timeout: Duration = .seconds(600)) -> DeviceGroups {
        let time = self.time
        return DeviceGroups(
            store: self.store,
            upstream: InMemoryGroupUpstream(),
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: self.audit,
            clock: ManualClock(),
            lookUpTimeout: timeout,
            nameTimeout: timeout,
            uptime: { time.current }
        )
    }

    private func pass(_ duration: Duration) { self.time.change { $0 = $0.advanced(by: duration) } }

    /// Saves a group with these members and one that is being removed. The last key is the current one.
    private func save(
        _ name: String = "g",
        keys: [String] = ["key-1", "key-2"],
        members: [String] = ["a"],
        of principal: Principal
    ) async throws {
        var group = DeviceGroup(
            tenant: principal.profile.id,
            tenantCreatedAt: principal.profile.tenant.createdAt,
            name: name,
            upstreamName: name,
            members: members.map { DeviceGroup.Member($0, .member) } + [DeviceGroup.Member("leaving", .removing)],
            updatedAt: .sample
        )
        for key in keys {
            group.key = key
            group.version = try await self.store.save(group)
        }
    }

    private static func named(_ name: String, from principal: Principal) -> SendCommand {
        SendCommand(
            by: Caller(principal: principal, origin: .sample, deadline: .now + .seconds(3_600)),
            to: .deviceGroup(name),
            message: Message(),
            payloadBytes: 42
        )
    }

    private static func limitKey(of token: String, _ principal: Principal) -> LimitKey {
        LimitKey(principal.profile.pseudonymizer.pseudonym(of: token))
    }

    @Test("After loading, a group is known by every key that the store holds for it")
    func load() async throws {
        let principal = try Principal.sample()
        try await self.save(of: principal)
        let known = self.groups().known
        let command = SendCommand.sample(from: principal, to: .tokens(["x", "key-1", "key-2"]))
        #expect(!known.mayBeAddressed(by: command))
        try await known.load()
        #expect(known.mayBeAddressed(by: command))
        let keys = try await known.limitKeys(of: command)
        #expect(keys.keys.sorted() == [1, 2])
        #expect(keys[1] == keys[2])
        #expect(keys[1]?.last == Self.limitKey(of: "a", principal))
        #expect(keys[1]?.count == 2)
        #expect(!known.mayBeAddressed(by: .sample(from: principal, to: .token("a"))))
        #expect(!known.mayBeAddressed(by: .sample(from: try .sample(tenant: "other"), to: .token("key-1"))))
    }

    @Test("A list looks up its distinct group keys in one call and charges every position that names one")
    func oneLookUp() async throws {
        let principal = try Principal.sample()
        for number in 1...3 { try await self.save("g\(number)", keys: ["key-\(number)"], of: principal) }
        let known = self.groups().known
        try await known.load()
        let keys = (0..<1_000).map { $0 < 900 ? "key-\($0 % 3 + 1)" : "device-\($0)" }
        let charged = try await known.limitKeys(of: .sample(from: principal, to: .tokens(keys)))
        #expect(charged.keys.sorted() == Array(0..<900))
        #expect(Set(charged.values).count == 3)
        #expect(self.store.lookUps.map { $0.sorted() } == [["key-1", "key-2", "key-3"]])
    }

    @Test("Repeated sends to a group cost one look-up in two seconds, by name or by key")
    func burst() async throws {
        let principal = try Principal.sample()
        try await self.save(of: principal)
        let known = self.groups().known
        try await known.load()
        let commands: [SendCommand] = [
            .sample(from: principal, to: .token("key-1")), .sample(from: principal, to: .tokens(["key-1", "x"])),
        ]
        for round in 1...2 {
            for command in commands + commands {
                #expect(try await known.limitKeys(of: command)[0]?.count == 2)
                #expect(await known.memberCount(of: commands[0]) == 1)
            }
            // By its name the group is the same one.
            #expect(try await known.limitKeys(of: Self.named("g", from: principal))[0]?.count == 2)
            #expect(self.store.lookUps == Array(repeating: ["key-1"], count: round))
            self.pass(.seconds(2) + .nanoseconds(1))
        }
    }

    @Test("The key of a removed group counts as a device, and repeated sends to it cost one look-up")
    func removed() async throws {
        let principal = try Principal.sample()
        try await self.save(of: principal)
        let known = self.groups().known
        try await known.load()
        try await self.store.remove(try #require(try await self.store.groups().first))
        for _ in 0..<3 {
            #expect(try await known.limitKeys(of: .sample(from: principal, to: .token("key-1"))).isEmpty)
        }
        #expect(self.store.lookUps.count == 1)
    }

    @Test("A replica sees its own changes at once, and another replica's when the cached group has expired")
    func changes() async throws {
        let principal = try Principal.sample()
        let groups = self.groups()
        let caller = try Caller.sample(principal)
        try await self.audit.whileRunning {
            let (before, _) = try await groups.put("g", tokens: ["a"], by: caller)
            let command = SendCommand.sample(from: principal, to: .token(try #require(before.key)))
            #expect(try await groups.known.limitKeys(of: command)[0]?.count == 2)
            _ = try await groups.put("g", tokens: ["a", "b"], by: caller)
            #expect(try await groups.known.limitKeys(of: command)[0]?.count == 3)
            _ = try await self.groups().put("g", tokens: ["a", "b", "c"], by: caller)
            #expect(try await groups.known.limitKeys(of: command)[0]?.count == 3)
            self.pass(.seconds(3))
            #expect(try await groups.known.limitKeys(of: command)[0]?.count == 4)
            try await groups.delete("g", by: caller)
            #expect(try await groups.known.limitKeys(of: command).isEmpty)
        }
    }

    enum Failure: CaseIterable {
        case refuses, hangs
    }

    @Test(
        "While the store fails, groups cached within the last hour are charged as before, and other groups are refused",
        arguments: Failure.allCases
    )
    func failingStore(failure: Failure) async throws {
        let principal = try Principal.sample()
        try await self.save("g", keys: ["key-1"], of: principal)
        try await self.save("other", keys: ["key-2"], of: principal)
        try await self.save("bare", keys: ["key-3"], of: principal)
        let groups = self.groups(timeout: failure == .hangs ? .milliseconds(1) : .seconds(600))
        try await groups.known.load()
        let warm = self.groups()
        try await warm.known.load()
        let cached: [SendCommand] = [
            .sample(from: principal, to: .tokens(["x", "key-1"])), .sample(from: principal, to: .token("key-1")),
            Self.named("g", from: principal),
        ]
        let uncached: [SendCommand] = [
            .sample(from: principal, to: .tokens(["key-1", "key-2"])), .sample(from: principal, to: .token("key-2")),
            Self.named("other", from: principal), Self.named("unknown", from: principal),
        ]
        // On a busy machine, a working store may take longer than the timeout of one millisecond.
        while (try? await groups.known.limitKeys(of: cached[0])) == nil {}
        switch failure {
        case .refuses: self.store.refuse()
        case .hangs: self.store.hang()
        }
        self.pass(.seconds(3_500))
        for command in cached {
            let charged = try await groups.known.limitKeys(of: command)
            #expect(charged.values.map(\.count) == [2])
        }
        #expect(await groups.known.memberCount(of: cached[1]) == 1)
        #expect(groups.known.group(named: "g", of: principal.profile)?.key == "key-1")
        for command in uncached {
            let refusal = await #expect(throws: Refusal.self) { _ = try await groups.known.limitKeys(of: command) }
            #expect(refusal?.code == .overloaded)
            #expect(refusal?.retryAfter == 1)
        }
        #expect(await groups.known.memberCount(of: uncached[1]) == nil)
        self.pass(.seconds(200))
        for command in cached {
            await #expect(throws: Refusal.self) { _ = try await groups.known.limitKeys(of: command) }
        }
        self.store.refuse(false)
        self.store.hang(false)
        for command in cached + uncached {
            #expect(try await warm.known.limitKeys(of: command).isEmpty == false)
        }
    }

    @Test("After a failed look-up, a cached group is not looked up again for two seconds")
    func pause() async throws {
        let principal = try Principal.sample()
        try await self.save(of: principal)
        let known = self.groups().known
        try await known.load()
        let command = SendCommand.sample(from: principal, to: .token("key-1"))
        _ = try await known.limitKeys(of: command)
        self.store.refuse()
        self.pass(.seconds(60))
        for _ in 0..<5 { #expect(try await known.limitKeys(of: command).count == 1) }
        #expect(self.store.lookUps.count == 2)
        self.store.refuse(false)
        self.pass(.seconds(2))
        _ = try await known.limitKeys(of: command)
        #expect(self.store.lookUps.count == 3)
    }

    @Test("A send past its deadline is refused without a look-up and does not count as a store failure")
    func passedDeadline() async throws {
        let principal = try Principal.sample()
        try await self.save(of: principal)
        let known = self.groups().known
        try await known.load()
        let command = SendCommand.sample(from: principal, to: .token("key-1"))
        let late = SendCommand(
            by: Caller(principal: principal, origin: .sample, deadline: .now),
            to: .notificationKey("key-2"),
            message: Message(),
            payloadBytes: 42
        )
        _ = try await known.limitKeys(of: command)
        self.pass(.seconds(60))
        let refusal = await #expect(throws: Refusal.self) { _ = try await known.limitKeys(of: late) }
        #expect(refusal?.code == .overloaded)
        #expect(await known.memberCount(of: late) == nil)
        #expect(self.store.lookUps.count == 1)
        // The store did not fail, so the expired group is looked up.
        _ = try await known.limitKeys(of: command)
        #expect(self.store.lookUps.count == 2)
    }

    @Test("A list may name at most 20 distinct group keys, and a dry run looks up none")
    func bound() async throws {
        let principal = try Principal.sample()
        for number in 1...21 { try await self.save("g\(number)", keys: ["key-\(number)"], of: principal) }
        let known = self.groups().known
        try await known.load()
        let keys = (1...20).map { "key-\($0)" }
        var dryRun = Message()
        dryRun.dryRun = true
        for message in [dryRun, Message()] {
            let count = message.dryRun ? 0 : 40
            let list = SendCommand.sample(from: principal, to: .tokens(keys + keys), message: message)
            #expect(try await known.limitKeys(of: list).count == count)
            #expect(self.store.lookUps.map(\.count) == (message.dryRun ? [] : [20]))
            let more = SendCommand.sample(from: principal, to: .tokens(keys + ["key-21"]), message: message)
            let refusal = await #expect(throws: Refusal.self) { _ = try await known.limitKeys(of: more) }
            #expect(refusal?.code == .invalidTarget)
            #expect(refusal?.legacyErrorName == .invalidParameters)
        }
    }

    @Test("An oversized group is charged to its own bucket and those of 20 members")
    func oversized() async throws {
        let principal = try Principal.sample()
        try await self.save(members: (0..<10_000).map { "t\($0)" }, of: principal)
        let known = self.groups().known
        try await known.load()
        let charged = try await known.limitKeys(of: .sample(from: principal, to: .token("key-1")))
        #expect(charged[0]?.count == 21)
        #expect(try await known.limitKeys(of: Self.named("g", from: principal))[0]?.count == 21)
    }

    @Test("A full cache evicts the oldest group")
    func capacity() async throws {
        let principal = try Principal.sample()
        let known = self.groups().known
        func lookUp(_ number: Int) async throws {
            _ = try await known.limitKeys(of: Self.named("g\(number)", from: principal))
        }
        for number in 0...10_000 {
            try await self.save("g\(number)", keys: ["key-\(number)"], members: [], of: principal)
            try await lookUp(number)
        }
        let count = self.store.lookUps.count
        try await lookUp(10_000)
        #expect(self.store.lookUps.count == count)
        try await lookUp(0)
        #expect(self.store.lookUps.count == count + 1)
    }
}
