import GatewayCore
import GatewayTestKit
import InMemoryLogging
import Logging
import MetricsTestKit
import Synchronization
import Testing

@Suite("Directory")
struct DirectoryTests {
    private let store = InMemoryDirectoryStore()
    private let clock = ManualClock()

    private func directory() throws -> Directory { try .sample(store: self.store) }

    @Test("A directory starts empty and shows what the store held at the last reload; a snapshot stays as it was")
    func reload() async throws {
        let directory = try self.directory()
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        #expect(directory.snapshot.tenants.isEmpty)
        try await directory.reload()
        let snapshot = directory.snapshot
        #expect(snapshot.tenants.keys.map(\.text) == ["acme"])
        try await self.store.apply(.deleteTenant(.sample("acme")))
        self.store.refuseLoads()
        await #expect(throws: GatewayError.self) { try await directory.reload() }
        #expect(directory.snapshot === snapshot)
        self.store.refuseLoads(false)
        try await directory.reload()
        #expect(snapshot.tenants.count == 1)
        #expect(directory.snapshot.tenants.isEmpty)
    }

    @Test("A tenant's load is carried from snapshot to snapshot; a new tenant's is its own")
    func load() async throws {
        let directory = try self.directory()
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await directory.reload()
        let before = try #require(directory.snapshot.tenants[.sample("acme")])
        try await self.store.apply(.putTenant(.sample("other"), salt: [2]))
        try await directory.reload()
        let after = try #require(directory.snapshot.tenants[.sample("acme")])
        #expect(after !== before)
        #expect(after.load === before.load)
        #expect(try directory.snapshot.tenants[.sample("other")]?.load !== before.load)
    }

    @Test("Every snapshot is shown to the observer once it is in force")
    func observer() async throws {
        let directory = try self.directory()
        let seen = Observed<[[String]]>([])
        directory.whenChanged { [weak directory] snapshot in
            #expect(directory?.snapshot === snapshot)
            seen.change { $0.append(snapshot.tenants.keys.map(\.text)) }
        }
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await directory.reload()
        try await self.store.apply(.deleteTenant(.sample("acme")))
        try await directory.reload()
        #expect(seen.current == [["acme"], []])
    }

    @Test("A change reads and opens what belongs to its tenant alone, among however many")
    func changes() async throws {
        let directory = try self.directory()
        for number in 0..<50 { try await self.store.apply(.putTenant(.sample("t-\(number)"), salt: [1])) }
        try await directory.reload()
        let before = directory.snapshot
        let key = APIKey.generate()
        try await directory.apply(.addKey(.sample(of: key, tenant: "t-7")))
        #expect(directory.snapshot.principals[key.id]?.profile.id.text == "t-7")
        try await directory.apply(.deleteTenant(.sample("t-7")))
        #expect(directory.snapshot.principals.isEmpty)
        #expect(self.store.loads == 1)
        #expect(directory.snapshot.tenants.count == 49)
        for (id, profile) in directory.snapshot.tenants { #expect(before.tenants[id] === profile) }
    }

    @Test("A change that was made although the store failed comes into force later", .timeLimit(.minutes(1)))
    func lostAnswer() async throws {
        let directory = try self.directory()
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await directory.reload()
        self.store.loseAnswers()
        self.store.refuseLoads()
        let error = await #expect(throws: GatewayError.self) {
            try await directory.apply(.deleteTenant(.sample("acme")))
        }
        #expect(error?.code == .storeUnavailable)
        #expect(directory.snapshot.tenants.count == 1)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await directory.run() }
            // The first reading fails as well.
            while self.store.loads < 2 { await Task.yield() }
            self.store.refuseLoads(false)
            while !directory.snapshot.tenants.isEmpty { await Task.yield() }
            group.cancelAll()
        }
    }

    @Test("A change that was shown while the whole store was read is not undone by what the reading saw")
    func overtakenByChange() async throws {
        let store = OvertakenStore()
        let directory = try Directory.sample(store: store)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await directory.reload() }
            await store.firstHasBegun()
            try await directory.apply(.deleteTenant(.sample("old")))
            try await directory.apply(.putTenant(.sample("made"), salt: [1]))
            store.releaseFirst()
            try await group.waitForAll()
        }
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["made"])
        try await directory.reload()
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["new"])
    }

    @Test("Rows that are refused are counted and logged once, and their tenants can be deleted")
    func refused() async throws {
        let (metrics, logs) = (TestMetrics(), InMemoryLogHandler())
        let logger = Logger(label: "test") { _ in logs }
        let directory = try Directory.sample(
            store: self.store,
            metrics: GatewayMetrics(factory: metrics),
            logger: logger
        )
        func count(_ kind: String) throws -> Double? {
            try metrics.expectMeter("fcmgw_directory_refused_rows", [("kind", kind)]).lastValue
        }
        try await directory.reload()
        #expect(try count("tenant") == 0)
        self.store.refuseRows([
            RefusedRow(.tenant, "acme", of: try .sample("acme")), RefusedRow(.key, "k", of: try .sample("globex")),
        ])
        for _ in 0..<2 { try await directory.reload() }
        #expect(try (count("tenant"), count("key"), count("credential")) == (1, 1, 0))
        #expect(logs.entries.map(\.level) == [.error])
        self.store.refuseRows([])
        try await directory.reload()
        #expect(try (count("tenant"), count("key")) == (0, 0))
    }

    @Test("Other default limits hold at once, for tenants that have none of their own")
    func defaultLimits() async throws {
        let directory = try self.directory()
        let own = LimitPolicies(tenant: [try .sample(7, per: 1, burst: 7)])
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        try await self.store.apply(.putLimits(.sample("globex"), LimitOverrides(tenant: own.tenant)))
        try await directory.reload()
        let key = try #require(directory.snapshot.tenants[.sample("acme")]).limitKey

        // The store is not asked, and its trouble is no obstacle.
        self.store.refuseLoads()
        let limits = LimitPolicies(tenant: [try .sample(3, per: 1, burst: 3)], topic: [])
        directory.use(defaultLimits: limits)
        let acme = try #require(directory.snapshot.tenants[.sample("acme")])
        #expect(acme.limits == limits)
        #expect(acme.limitKey == key)
        let globex = try #require(directory.snapshot.tenants[.sample("globex")])
        #expect(globex.limits.tenant == own.tenant)
        #expect(globex.limits.topic.isEmpty)

        self.store.refuseLoads(false)
        try await self.store.apply(.putTenant(.sample("later"), salt: [3]))
        try await directory.reload()
        let later = try TenantID.sample("later")
        #expect(directory.snapshot.tenants[later]?.limits == limits)
    }

    @Test("A reload that changes nothing gives no tenant a fresh burst, and other limits start with full buckets")
    func policyChange() async throws {
        let directory = try self.directory()
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        func put(_ burst: Int) async throws {
            let policies = [try RatePolicy.sample(1, per: 180, burst: burst)]
            try await self.store.apply(.putLimits(.sample("acme"), LimitOverrides(device: policies)))
            try await directory.reload()
        }
        let limiter = MemoryRateLimiter.withoutJitter()
        func admitted(_ count: Int) async throws -> Int {
            let profile = try #require(directory.snapshot.tenants[.sample("acme")])
            let request = LimitRequest(policies: profile.limits, count: count)
            return await limiter.admit(request, now: self.clock.now()).admitted(of: count)
        }
        try await put(60)
        #expect(try await admitted(61) == 60)
        try await put(60)
        #expect(try await admitted(5) == 0)
        try await put(20)
        #expect(try await admitted(21) == 20)
    }

    @Test("What a read brings that was overtaken by a later one is not shown")
    func overtaken() async throws {
        let store = OvertakenStore()
        let directory = try Directory.sample(store: store)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await directory.reload() }
            await store.firstHasBegun()
            try await directory.reload()
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["new"])
            store.releaseFirst()
            try await group.waitForAll()
        }
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["new"])
    }
}

// MARK: - Other replicas

extension DirectoryTests {
    @Test("What another replica changed is shown with the next poll, and nothing else is read")
    func refresh() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        let directory = try self.directory()
        try await directory.reload()
        let acme = try #require(directory.snapshot.tenants[.sample("acme")])
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        await directory.refresh()
        #expect(directory.snapshot.tenants.count == 2)
        #expect(directory.snapshot.tenants[acme.id] === acme)
        #expect(self.store.loads == 1)
        try await self.store.apply(.deleteTenant(acme.id))
        await directory.refresh()
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
        #expect(self.store.loads == 1)
    }

    @Test("A change of one's own and another replica's follow each other, whichever is heard of first")
    func ownAndOthers() async throws {
        let directory = try self.directory()
        try await directory.reload()
        try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        try await directory.apply(.deleteTenant(.sample("acme")))
        await directory.refresh()
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
    }

    @Test("Of two readings at once the one that saw less undoes nothing, though it began later")
    func readingsOutOfOrder() async throws {
        let store = OutOfOrderStore()
        let directory = try Directory.sample(store: store)
        async let first: Void = directory.catchUp()
        await store.hasBegun(0)
        async let second: Void = directory.catchUp()
        await store.hasBegun(1)
        store.release(0)
        try await first
        store.release(1)
        try await second
        #expect(directory.snapshot.tenants.isEmpty)
    }

    @Test("A store that took another one's place is read anew, though it has made as many changes")
    func failover() async throws {
        let standby = self.store.contents
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        let directory = try self.directory()
        try await directory.reload()
        self.store.failOver(to: standby, at: "standby")
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        await directory.refresh()
        #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
        try await self.store.apply(.deleteTenant(.sample("globex")))
        await directory.refresh()
        #expect(directory.snapshot.tenants.isEmpty)
    }

    @Test("A snapshot that can't be compared with the store expires, and is good again once it can")
    func staleness() async throws {
        let (time, factory) = (Observed(ContinuousClock.now), TestMetrics())
        let directory = Directory(
            store: self.store,
            masterKey: try .sample(),
            auditKey: .sample("audit"),
            defaultLimits: LimitPolicies(),
            maxStale: .seconds(900),
            uptime: { time.current },
            metrics: GatewayMetrics(factory: factory)
        )
        let age = try factory.expectMeter("fcmgw_cache_age_seconds", [("cache", "directory")])
        try await directory.reload()
        await directory.refresh()
        #expect(age.lastValue == 0)
        self.store.refuseLoads()
        time.change { $0 += .seconds(900) }
        await directory.refresh()
        #expect(age.lastValue == 900)
        #expect(!directory.snapshot.isExpired)
        time.change { $0 += .milliseconds(1) }
        await directory.refresh()
        #expect(directory.snapshot.isExpired)
        self.store.refuseLoads(false)
        await directory.refresh()
        #expect(!directory.snapshot.isExpired)
        #expect(age.lastValue == 0)
    }

    @Test("A snapshot expires while the store is silent, and an old answer does not renew it", .timeLimit(.minutes(1)))
    func silence() async throws {
        let (time, store, logs) = (Observed(ContinuousClock.now), SilentStore(), InMemoryLogHandler())
        let directory = Directory(
            store: store,
            masterKey: try .sample(),
            auditKey: .sample("audit"),
            defaultLimits: LimitPolicies(),
            maxStale: .seconds(4),
            uptime: { time.current },
            logger: Logger(label: "test") { _ in logs }
        )
        try await directory.whileRunning {
            directory.hint()
            await store.isAsked()
            time.change { $0 += .milliseconds(4_001) }
            while !directory.snapshot.isExpired { await Task.yield() }
            store.answer()
            await store.isAsked()
            #expect(directory.snapshot.isExpired)
            store.answer()
            while directory.snapshot.isExpired { await Task.yield() }
            store.answerAll()
        }
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    @Test("Of a store that can't be read the first failure is logged, and its end")
    func loggedFailures() async throws {
        let logs = InMemoryLogHandler()
        let directory = try Directory.sample(store: self.store, logger: Logger(label: "test") { _ in logs })
        for refuses in [true, true, false, false, true] {
            self.store.refuseLoads(refuses)
            await directory.refresh()
        }
        #expect(logs.entries.map(\.level) == [.error, .notice, .error])
    }

    @Test("A change that was planned before another replica's is not made, until that is shown")
    func staleChange() async throws {
        let directory = try self.directory()
        try await directory.reload()
        let (acme, globex) = (try TenantID.sample("acme"), try TenantID.sample("globex"))
        try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        // What others have is not in the way.
        try await directory.apply(.deleteTenant(acme))
        let (_, absent) = directory.basis(of: globex)
        #expect(try await !directory.apply(.putTenant(.sample("globex"), salt: [3]), plannedAt: absent))
        #expect(directory.snapshot.tenants.isEmpty)
        await directory.refresh()
        try await directory.apply(.deleteTenant(globex))
        #expect(self.store.contents.tenants.isEmpty)
        try await directory.apply(.putTenant(.sample("globex"), salt: [4]))
        #expect(directory.snapshot.tenants[globex]?.salt == [4])
    }

    @Test("Who has the store to itself shows no age")
    func noAge() throws {
        let factory = TestMetrics()
        let directory = Directory(
            store: self.store,
            masterKey: try .sample(),
            auditKey: .sample("audit"),
            defaultLimits: LimitPolicies(),
            metrics: GatewayMetrics(factory: factory)
        )
        #expect(directory.snapshot.tenants.isEmpty)
        #expect(throws: (any Error).self) {
            try factory.expectMeter("fcmgw_cache_age_seconds", [("cache", "directory")])
        }
    }
}

/// A directory's store whose first read sees the tenant `old`, and waits until it is let go; later ones see `new`, and
/// changes are answered as if they were made.
final class OvertakenStore: DirectoryStore {
    private let reads = Atomic(0)
    private let begun = AsyncStream.makeStream(of: Void.self)
    private let released = AsyncStream.makeStream(of: Void.self)

    func firstHasBegun() async {
        for await _ in self.begun.stream { return }
    }

    func releaseFirst() {
        self.released.continuation.yield()
    }

    func load() async throws(GatewayError) -> DirectoryContents {
        let isFirst = self.reads.add(1, ordering: .relaxed).newValue == 1
        var contents = DirectoryContents()
        if let tenant = try? Tenant.sample(isFirst ? "old" : "new") { contents.tenants = [tenant] }
        guard isFirst else { return contents }
        self.begun.continuation.yield()
        for await _ in self.released.stream { break }
        return contents
    }

    func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents? {
        var contents = DirectoryContents()
        if case .putTenant(let tenant, _) = change { contents.tenants = [tenant] }
        return contents
    }

    func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews { .none }
}

/// A directory's store with two readings that wait until they are let go: the first one sees that the tenant `acme` was
/// deleted, the other one that it was made, which was before.
private final class OutOfOrderStore: DirectoryStore {
    private let reads = Atomic(0)
    private let begun = [AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self)]
    private let released = [AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self)]

    func hasBegun(_ reading: Int) async {
        for await _ in self.begun[reading].stream { return }
    }

    func release(_ reading: Int) {
        self.released[reading].continuation.yield()
    }

    func load() async throws(GatewayError) -> DirectoryContents { DirectoryContents() }

    func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents? { nil }

    func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews {
        let reading = self.reads.add(1, ordering: .relaxed).oldValue
        self.begun[reading].continuation.yield()
        for await _ in self.released[reading].stream { break }
        guard let tenant = try? Tenant.sample("acme") else { return .none }
        var contents = DirectoryContents()
        if reading == 1 {
            contents.tenants = [tenant]
            contents.salts = [tenant.id: [1]]
        }
        return .tenants([tenant.id: contents], version: reading == 0 ? 5 : 4)
    }
}

/// A directory's store that answers a poll once a test lets it.
private final class SilentStore: DirectoryStore {
    private let polls = AsyncStream.makeStream(of: Void.self)
    private let answers = AsyncStream.makeStream(of: Void.self)

    func isAsked() async {
        for await _ in self.polls.stream { return }
    }

    func answer() { self.answers.continuation.yield() }

    func answerAll() { self.answers.continuation.finish() }

    func load() async throws(GatewayError) -> DirectoryContents { DirectoryContents() }

    func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents? { nil }

    func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews {
        self.polls.continuation.yield()
        for await _ in self.answers.stream { break }
        return .none
    }
}
