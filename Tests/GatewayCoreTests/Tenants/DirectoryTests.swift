import Dispatch
import GatewayCore
import GatewayTestKit
import InMemoryLogging
import Logging
import MetricsTestKit
import ServiceLifecycleTestKit
import Synchronization
import Testing

@Suite("Directory", .timeLimit(.minutes(1)))
struct DirectoryTests {
    private let store = TestDirectoryStore()
    private let clock = ManualClock()

    /// Runs a test with a directory of the store's present contents.
    private func run(_ body: @Sendable (Directory) async throws -> Void) async throws {
        let directory = try await Directory.sample(store: self.store)
        try await directory.whileRunning { try await body(directory) }
    }

    @Test("A directory shows the contents of the last successful read, and a snapshot never changes")
    func readings() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.run { directory in
            let snapshot = directory.snapshot
            #expect(snapshot.tenants.keys.map(\.text) == ["acme"])
            try await self.store.apply(.deleteTenant(.sample("acme")))
            self.store.refuseReads()
            await #expect(throws: GatewayError.self) { try await directory.catchUp() }
            #expect(directory.snapshot === snapshot)
            self.store.refuseReads(false)
            try await directory.catchUp()
            #expect(snapshot.tenants.count == 1)
            #expect(directory.snapshot.tenants.isEmpty)
        }
        self.store.refuseReads()
        await #expect(throws: GatewayError.self) { try await Directory.sample(store: self.store) }
    }

    @Test("The observer receives every later snapshot before the caller continues")
    func observer() async throws {
        let seen = Observed<[DirectorySnapshot]>([])
        let directory = try await Directory.sample(
            store: self.store,
            observer: { new in seen.change { $0.append(new) } }
        )
        try await directory.whileRunning {
            try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
            try await directory.catchUp()
            #expect(seen.current.last === directory.snapshot)
            try await directory.apply(.deleteTenant(.sample("acme")))
            #expect(seen.current.last === directory.snapshot)
            try await directory.catchUp()
        }
        #expect(seen.current.map { $0.tenants.keys.map(\.text) } == [["acme"], []])
    }

    @Test("The observer never runs on the executor of a caller or of the directory's task")
    func executor() async throws {
        let (loop, isOnLoop) = (LoopExecutor(), Observed<[Bool]>([]))
        let directory = try await Directory.sample(
            store: self.store,
            observer: { _ in isOnLoop.change { $0.append(LoopExecutor.isCurrent) } }
        )
        await withTaskExecutorPreference(loop) {
            #expect(LoopExecutor.isCurrent)
            await #expect(throws: Never.self) {
                try await directory.whileRunning {
                    try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
                    try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
                    try await directory.catchUp()
                    await directory.use(defaultLimits: LimitPolicies(topic: []))
                }
            }
        }
        #expect(isOnLoop.current == [false, false, false])
    }

    @Test("A change causes no full read and leaves the profiles of other tenants unchanged")
    func changes() async throws {
        for number in 0..<50 { try await self.store.apply(.putTenant(.sample("t-\(number)"), salt: [1])) }
        try await self.run { directory in
            let before = directory.snapshot
            let key = APIKey.generate()
            try await directory.apply(.addKey(.sample(of: key, tenant: "t-7")))
            #expect(directory.snapshot.principals[key.id]?.profile.id.text == "t-7")
            try await directory.apply(.deleteTenant(.sample("t-7")))
            #expect(directory.snapshot.principals.isEmpty)
            #expect(self.store.reads == 1)
            #expect(directory.snapshot.tenants.count == 49)
            for (id, profile) in directory.snapshot.tenants { #expect(before.tenants[id] === profile) }
        }
    }

    @Test("Simultaneous changes of one tenant are all shown")
    func simultaneousChanges() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.run { directory in
            let planned = directory.snapshot.version(of: try .sample("acme"))
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 {
                    let change = Directory.Change.addKey(try .sample(of: .generate(), tenant: "acme"))
                    group.addTask {
                        try await directory.apply(change, plannedAt: Directory.Version(1_000, in: planned.origin))
                    }
                }
                for try await isMade in group { #expect(isMade) }
            }
            #expect(try await Set(directory.snapshot.principals.keys) == Set(self.store.contents().keys.map(\.id)))
        }
    }

    @Test("A change that was made although the store reported a failure takes effect later")
    func lostAnswer() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.run { directory in
            self.store.loseAnswers()
            self.store.refuseReads()
            let error = await #expect(throws: GatewayError.self) {
                try await directory.apply(.deleteTenant(.sample("acme")))
            }
            #expect(error?.code == .storeUnavailable)
            #expect(directory.snapshot.tenants.count == 1)
            self.store.refuseReads(false)
            while !directory.snapshot.tenants.isEmpty { await Task.yield() }
        }
    }

    @Test("A read that ends late undoes no change, and shows other replicas' changes")
    func overtakenByChanges() async throws {
        try await self.store.apply(.putTenant(.sample("old"), salt: [1]))
        let held = HeldStore(base: self.store)
        let directory = try await Directory.sample(store: held)
        try await directory.whileRunning {
            try await self.store.apply(.putTenant(.sample("theirs"), salt: [2]))
            try await self.store.apply(.putTenant(.sample("old", isDisabled: true), salt: [1]))
            async let reading: Void = directory.catchUp()
            await held.hasRead()
            let old = try TenantID.sample("old")
            let ahead = Directory.Version(3, in: directory.snapshot.version(of: old).origin)
            #expect(try await directory.apply(.deleteTenant(old), plannedAt: ahead))
            try await directory.apply(.putTenant(.sample("made"), salt: [3]))
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["made"])
            held.answer()
            try await reading
            #expect(Set(directory.snapshot.tenants.keys.map(\.text)) == ["made", "theirs"])
            held.answerAll()
            try await directory.catchUp()
            #expect(directory.snapshot.version(of: old).number == 5)
        }
    }

    @Test("Callers that arrive during a read share the next one, which starts after their arrival")
    func sharedReadings() async throws {
        let held = HeldStore(base: self.store)
        let directory = try await Directory.sample(store: held)
        try await directory.whileRunning {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { try await directory.catchUp() } }
                await held.hasRead()
                try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
                async let late: Void = directory.catchUp()
                for _ in 0..<1_000 { await Task.yield() }
                held.answerAll()
                try await late
                #expect(directory.snapshot.tenants.count == 1)
                try await group.waitForAll()
            }
        }
        // The directory's first read, and fewer than one per caller.
        #expect(self.store.reads < 1 + 21)
    }

    @Test("Refused rows are counted until they are deleted, and logged once")
    func refused() async throws {
        let key = APIKey.generate()
        for name in ["acme", "globex"] { try await self.store.apply(.putTenant(.sample(name), salt: [1])) }
        try await self.store.apply(.addKey(.sample(of: key, tenant: "globex")))
        let (metrics, logs) = (TestMetrics(), InMemoryLogHandler())
        let directory = try await Directory.sample(
            store: self.store,
            metrics: GatewayMetrics(factory: metrics),
            logger: Logger(label: "test") { _ in logs }
        )
        @Sendable func count(_ kind: String) throws -> Double? {
            try metrics.expectMeter("fcmgw_directory_refused_rows", [("kind", kind)]).lastValue
        }
        #expect(try count("tenant") == 0)
        try await directory.whileRunning {
            try await self.store.damage(.sample("acme"))
            try await self.store.damage(.sample("globex"), key: key.id)
            for _ in 0..<2 { try await directory.catchUp() }
            #expect(try (count("tenant"), count("key"), count("credential")) == (1, 1, 0))
            #expect(logs.entries.map(\.level) == [.error])
            try await self.store.apply(.deleteTenant(.sample("acme")))
            try await self.store.apply(.removeKey(id: key.id, .sample("globex")))
            try await directory.catchUp()
            #expect(try (count("tenant"), count("key")) == (0, 0))
        }
    }

    @Test("New default limits apply at once to tenants without their own, even while a read hangs")
    func defaultLimits() async throws {
        let own = LimitPolicies(tenant: [try .sample(7, per: 1, burst: 7)])
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
        try await self.store.apply(.putLimits(.sample("globex"), LimitOverrides(tenant: own.tenant)))
        let held = HeldStore(base: self.store)
        let directory = try await Directory.sample(store: held)
        try await directory.whileRunning {
            let key = try #require(directory.snapshot.tenants[.sample("acme")]).limitKey
            directory.hint()
            await held.hasRead()
            let limits = LimitPolicies(tenant: [try .sample(3, per: 1, burst: 3)], topic: [])
            await directory.use(defaultLimits: limits)
            let acme = try #require(directory.snapshot.tenants[.sample("acme")])
            #expect(acme.limits == limits)
            #expect(acme.limitKey == key)
            let globex = try #require(directory.snapshot.tenants[.sample("globex")])
            #expect(globex.limits.tenant == own.tenant)
            #expect(globex.limits.topic.isEmpty)

            held.answerAll()
            try await self.store.apply(.putTenant(.sample("later"), salt: [3]))
            try await directory.catchUp()
            #expect(try directory.snapshot.tenants[.sample("later")]?.limits == limits)
        }
    }

    @Test("At shutdown waiting callers and later ones are refused, and none hangs")
    func shutdown() async throws {
        let held = HeldStore(base: self.store)
        let directory = try await Directory.sample(store: held)
        @Sendable func expectRefusal(_ body: () async throws -> Void) async {
            let error = await #expect(throws: GatewayError.self) { try await body() }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.message.contains("shutting down") == true)
        }
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await directory.run() }
                group.addTask { await expectRefusal { try await directory.catchUp() } }
                await held.hasRead()
                group.addTask { await expectRefusal { try await directory.catchUp() } }
                trigger.triggerGracefulShutdown()
                // The first read is still running, so only the end of the directory answers this.
                await expectRefusal { try await directory.catchUp() }
                held.answerAll()
                try await group.waitForAll()
            }
        }
        await expectRefusal { try await directory.catchUp() }
        await expectRefusal { try await directory.apply(.putTenant(.sample("acme"), salt: [1])) }
        #expect(try await self.store.contents().tenants.isEmpty)
        await directory.use(defaultLimits: LimitPolicies())
    }
}

// MARK: - Other replicas

extension DirectoryTests {
    @Test("A read shows another replica's changes and keeps the other profiles")
    func othersChanges() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.run { directory in
            let acme = try #require(directory.snapshot.tenants[.sample("acme")])
            try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.count == 2)
            #expect(directory.snapshot.tenants[acme.id] === acme)
            try await self.store.apply(.deleteTenant(acme.id))
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
        }
    }

    @Test("One read shows many tenants that another replica changed")
    func manyChanges() async throws {
        try await self.run { directory in
            for number in 0..<300 { try await self.store.apply(.putTenant(.sample("t-\(number)"), salt: [1])) }
            let key = APIKey.generate()
            try await self.store.apply(.addKey(.sample(of: key, tenant: "t-7")))
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.count == 300)
            #expect(directory.snapshot.principals[key.id]?.profile === directory.snapshot.tenants[try .sample("t-7")])
            #expect(self.store.reads == 2)
        }
    }

    @Test("Another replica's change is shown without a notification")
    func polls() async throws {
        let directory = try await Directory.sample(store: self.store, maxStale: .seconds(900))
        try await directory.whileRunning {
            try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
            while directory.snapshot.tenants.isEmpty { await Task.yield() }
        }
    }

    @Test("A gap between two own changes makes the directory read another replica's change")
    func ownAndOthers() async throws {
        try await self.run { directory in
            try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
            try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
            try await directory.apply(.deleteTenant(.sample("acme")))
            // The gap between the two changes triggers a read.
            while try directory.snapshot.tenants[.sample("globex")] == nil { await Task.yield() }
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
        }
    }

    @Test("After a failover the new store is read in full, even with as many changes as the old one")
    func failover() async throws {
        try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
        try await self.run { directory in
            self.store.failOver()
            try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["globex"])
            try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
            try await self.store.apply(.deleteTenant(.sample("globex")))
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["acme"])
        }
    }

    @Test("A snapshot expires if the store can't be read, and is valid again after a successful read")
    func staleness() async throws {
        let (time, factory) = (Observed(Uptime.now), TestMetrics())
        let directory = try await Directory.sample(
            store: self.store,
            maxStale: .seconds(900),
            uptime: { time.current },
            metrics: GatewayMetrics(factory: factory)
        )
        let age = try factory.expectMeter("fcmgw_cache_age_seconds", [("cache", "directory")])
        try await directory.whileRunning {
            try await directory.catchUp()
            #expect(age.lastValue == 0)
            self.store.refuseReads()
            time.change { $0 += .seconds(900) }
            try? await directory.catchUp()
            #expect(age.lastValue == 900)
            #expect(!directory.snapshot.isExpired)
            time.change { $0 += .milliseconds(1) }
            try? await directory.catchUp()
            #expect(directory.snapshot.isExpired)
            self.store.refuseReads(false)
            try await directory.catchUp()
            #expect(!directory.snapshot.isExpired)
            #expect(age.lastValue == 0)
        }
    }

    @Test("A snapshot expires while a read hangs, and the answer of an old read does not renew it")
    func silence() async throws {
        let (time, held, logs) = (Observed(Uptime.now), HeldStore(base: self.store), InMemoryLogHandler())
        let directory = try await Directory.sample(
            store: held,
            maxStale: .seconds(4),
            uptime: { time.current },
            logger: Logger(label: "test") { _ in logs }
        )
        try await directory.whileRunning {
            directory.hint()
            await held.hasRead()
            time.change { $0 += .milliseconds(4_001) }
            while !directory.snapshot.isExpired { await Task.yield() }
            held.answer()
            await held.hasRead()
            #expect(directory.snapshot.isExpired)
            held.answer()
            while directory.snapshot.isExpired { await Task.yield() }
            held.answerAll()
        }
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    @Test("A read that hangs fails after a timeout, and its retries have no timeout until one succeeds")
    func hangingReading() async throws {
        let (held, logs) = (HeldStore(base: self.store), InMemoryLogHandler())
        let (timeouts, isOver) = (Observed(0), Observed(false))
        let directory = try await Directory.sample(
            store: held,
            maxStale: .seconds(900),
            readingTimeout: {
                let isFirst = timeouts.change { count in
                    count += 1
                    return count == 1
                }
                try? await isOver.wait { $0 && isFirst }
            },
            logger: Logger(label: "test") { _ in logs }
        )
        try await directory.whileRunning {
            directory.hint()
            await held.hasRead()
            try await self.store.apply(.putTenant(.sample("acme"), salt: [1]))
            self.store.refuseReads()
            isOver.change { $0 = true }
            while logs.entries.isEmpty { await Task.yield() }
            for _ in 0..<2 {
                await #expect(throws: GatewayError.self) { try await directory.catchUp() }
            }
            #expect(timeouts.current == 1)
            self.store.refuseReads(false)
            try await directory.catchUp()
            #expect(directory.snapshot.tenants.keys.map(\.text) == ["acme"])
            try await directory.catchUp()
            #expect(timeouts.current > 1)
        }
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    @Test("The first failed read of an outage and its end are logged, and nothing between")
    func loggedFailures() async throws {
        let logs = InMemoryLogHandler()
        let directory = try await Directory.sample(store: self.store, logger: Logger(label: "test") { _ in logs })
        try await directory.whileRunning {
            for refuses in [true, true, false, false, true] {
                self.store.refuseReads(refuses)
                try? await directory.catchUp()
            }
        }
        #expect(logs.entries.map(\.level) == [.error, .notice, .error])
    }

    @Test("A change planned before another replica's change of the tenant is refused until that change is read")
    func staleChange() async throws {
        try await self.run { directory in
            let (acme, globex) = (try TenantID.sample("acme"), try TenantID.sample("globex"))
            try await directory.apply(.putTenant(.sample("acme"), salt: [1]))
            let absent = directory.snapshot.version(of: globex)
            try await self.store.apply(.putTenant(.sample("globex"), salt: [2]))
            // A change of another tenant does not conflict.
            try await directory.apply(.deleteTenant(acme))
            #expect(try await !directory.apply(.putTenant(.sample("globex"), salt: [3]), plannedAt: absent))
            #expect(try await self.store.contents().salts[globex] == [2])
            try await directory.catchUp()
            try await directory.apply(.deleteTenant(globex))
            #expect(try await self.store.contents().tenants.isEmpty)
            try await directory.apply(.putTenant(.sample("globex"), salt: [4]))
            #expect(directory.snapshot.tenants[globex]?.salt == [4])
        }
    }

    @Test("A directory that does not share its store has no age metric")
    func noAge() async throws {
        let factory = TestMetrics()
        _ = try await Directory.sample(store: self.store, metrics: GatewayMetrics(factory: factory))
        #expect(throws: (any Error).self) {
            try factory.expectMeter("fcmgw_cache_age_seconds", [("cache", "directory")])
        }
    }
}

/// A store that holds back the answer of each read until the test releases it.
private struct HeldStore: DirectoryStore {
    let base: TestDirectoryStore
    private let readings = AsyncStream.makeStream(of: Void.self)
    private let answers = AsyncStream.makeStream(of: Void.self)

    func hasRead() async {
        for await _ in self.readings.stream { return }
    }

    func answer() { self.answers.continuation.yield() }

    func answerAll() { self.answers.continuation.finish() }

    func load() async throws(GatewayError) -> Directory.Contents { try await self.base.load() }

    func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? {
        try await self.base.apply(change, plannedAt: version)
    }

    func changes(since version: Directory.Version) async throws(GatewayError) -> Directory.News {
        let news = try await self.base.changes(since: version)
        self.readings.continuation.yield()
        for await _ in self.answers.stream { break }
        return news
    }
}

/// Runs jobs one by one on a queue, as an event loop does.
private final class LoopExecutor: TaskExecutor {
    private static let key = DispatchSpecificKey<Bool>()

    private let queue = DispatchQueue(label: "loop")

    init() {
        self.queue.setSpecific(key: Self.key, value: true)
    }

    static var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) ?? false }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async {
            // Unsafe because the runtime cannot check that each job runs exactly once; this closure runs once.
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
