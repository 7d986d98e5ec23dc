import FCMModel
import GatewayTestKit
import Logging
import Testing

@testable import GatewayCore

/// A runner over SQLite, whose process may die at any step.
struct BatchRunnerTests {
    /// A store with one tenant and a key, and the devices that FCM reaches.
    private struct World {
        let clock = ManualClock()
        let database: TestDatabase
        private(set) var directory: Directory
        let fcm = SurvivingFCM()
        /// The tenants whose live sends were paused.
        let paused = Observed<[TenantID]>([])
        let tenant: TenantID
        let store: any BatchStore

        init(_ upstream: UpstreamKind = .v1, rate: Int = 12) async throws {
            self.tenant = try .sample("acme")
            self.database = TestDatabase(clock: self.clock)
            self.store = self.database.batchStore()
            self.directory = try await Directory.sample(store: self.database.directoryStore)
            // The burst is far more than a test sends. The rate decides how many calls one mark covers.
            let policy = try #require(RatePolicy(rate: rate * 10, periodSeconds: 8, burst: 1_000))
            let key = APIKey.Record(
                id: "key",
                tenant: self.tenant,
                name: "sender",
                digest: Array(repeating: 1, count: 32),
                scopes: [.sendMessages, .manageBatches],
                topicPrefixes: [],
                createdAt: .sample
            )
            try await self.apply(.putTenant(try Tenant.sample("acme", upstream: upstream), salt: [1]))
            try await self.apply(.putLimits(self.tenant, LimitOverrides(tenant: [policy], device: [])))
            try await self.apply(.addKey(key))
        }

        /// Makes a change, which the next lives see.
        mutating func apply(_ change: Directory.Change) async throws {
            let store = self.database.directoryStore
            _ = try #require(try await store.apply(change, plannedAt: self.directory.snapshot.version))
            self.directory = try await Directory.sample(store: store)
        }

        var profile: TenantProfile {
            get throws { try #require(self.directory.snapshot.tenants[self.tenant]) }
        }

        func create(
            _ texts: [String],
            kind: Target.Kind = .tokens,
            id: String = "batch",
            _ change: (inout Batch) -> Void = { _ in }
        ) async throws {
            var batch = Batch(
                id: id,
                tenant: self.tenant,
                kind: kind,
                state: .queued,
                keyID: "key",
                createdAt: self.clock.now(),
                dueAt: self.clock.now(),
                expiresAt: self.clock.now()
            )
            batch.options.keepsAccepted = true
            change(&batch)
            batch.setDue(batch.dueAt)
            let sealer = BatchSealer(id, of: try self.profile)
            let pending = texts.enumerated().map { Batch.Recipient(place: $0.offset, $0.element) }
            let new = BatchWrite.New(
                batch,
                message: try sealer.seal(message: [1]),
                chunks: [Batch.Chunk(count: texts.count, pending: try sealer.seal(pending, of: 0))]
            )
            #expect(try await self.store.apply([.create(new)]) == [.done])
        }

        /// Lets a process live until nothing is left to do, or until it dies.
        func live(
            _ process: MortalProcess = MortalProcess(),
            rounds: Int = 6,
            answering: ScriptedUpstream.Responder? = nil,
            afterEach: @Sendable () -> Void = {}
        ) async throws {
            let responder = answering ?? self.fcm.upstream(of: process)
            let fixture = PipelineFixture(queueCapacity: 10_000, clock: self.clock, upstream: responder)
            let owner = ReplicaID(name: "life", startedAt: .sample)
            let records = TestIdempotencyStore(in: self.database, owner: owner)
            let sends = IdempotentSends.sample(
                pipeline: fixture.pipeline,
                store: MortalIdempotencyStore(store: records, process: process),
                clock: self.clock
            )
            let own = self.database.batchStore(owner: owner.text)
            let runner = BatchRunner.sample(
                store: MortalBatchStore(store: own, process: process),
                sends: sends,
                limiter: fixture.limiter,
                directory: self.directory,
                clock: self.clock,
                pause: { profile, _ in self.paused.change { $0.append(profile.id) } }
            ) { _, _, target, caller, _ throws(Refusal) in
                SendCommand(by: caller, to: target, message: Message(), payloadBytes: 0)
            }
            try await sends.whileRunning {
                try await runner.whileWriting {
                    await runner.sweep()
                    for _ in 0..<rounds where !process.isDead {
                        await runner.sendDue()
                        afterEach()
                        self.clock.advance(by: .seconds(20))
                    }
                }
            }
        }

        func batch(_ id: String = "batch") async throws -> Batch {
            try #require(try await self.store.batch(id, of: self.tenant))
        }

        /// The outcomes of all recipients with a result.
        func outcomes() async throws -> [String: RecipientOutcome] {
            let sealer = BatchSealer("batch", of: try self.profile)
            let chunks = try await self.store.results(of: "batch", of: self.tenant, from: 0, limit: 9)
            let results = try chunks.flatMap { try sealer.results(in: $0.results, of: $0.chunk) }
            return Dictionary(uniqueKeysWithValues: results.map { ($0.text, $0.outcome) })
        }
    }

    @Test(
        "A process that dies at any step duplicates no delivery, and every recipient has an outcome",
        arguments: [UpstreamKind.v1, .legacy]
    )
    func death(upstream: UpstreamKind) async throws {
        let tokens = (0..<10).map { "t\($0)" }
        let world = try await World(upstream)
        try await world.create(tokens)
        let immortal = MortalProcess()
        try await world.live(immortal)
        #expect(try await world.batch().state == .finished)
        #expect(world.fcm.total == tokens.count)
        let steps = immortal.steps
        #expect(steps.contains("before reserve") && steps.contains("before finish") && steps.contains("before record"))

        for count in 0..<steps.count {
            let world = try await World(upstream)
            try await world.create(tokens)
            try await world.live(MortalProcess(dyingAfter: count))
            try await world.live()
            let (batch, place) = (try await world.batch(), "died before \(steps[count])")
            #expect(batch.state == .finished, "\(place): \(batch)")
            let counts = batch.counts
            #expect(counts.accepted + counts.unknown == tokens.count, "\(place): \(counts)")
            // By HTTP v1 three calls are marked at a time.
            #expect(counts.unknown <= (upstream == .v1 ? 3 : tokens.count), "\(place): \(counts)")
            let outcomes = try await world.outcomes()
            #expect(outcomes.count == tokens.count, "\(place)")
            for token in tokens {
                #expect(world.fcm.count(token) <= 1, "\(place): \(token)")
                if outcomes[token]?.code == nil { #expect(world.fcm.count(token) == 1, "\(place): \(token)") }
            }
            #expect(try await TestIdempotencyStore(in: world.database).records().isEmpty, "\(place)")
        }
    }

    @Test("A paused owner sends nothing after another one has recorded the slice")
    func fenced() async throws {
        let world = try await World()
        try await world.create(["a", "b"])
        let late = world.database.batchStore(owner: "late")
        let claim = try #require(
            try await late.claim(of: world.tenant, chunks: 1, slice: 500, recipients: 500).first?.claim
        )
        try await world.live()
        #expect(try await world.batch().state == .finished && world.fcm.total == 2)
        let request = IdempotentRequest(claim, digest: [1])
        let identity = IdempotencyRecord.Identity(request, of: try world.profile)
        let record = IdempotencyRecord(
            fingerprint: [1],
            messageID: "m",
            createdAt: .sample,
            expiresAt: .sample,
            state: .open(progress: [])
        )
        let outcomes = try await TestIdempotencyStore(in: world.database, owner: ReplicaID(text: "late"))
            .apply([.reserve(identity, record)])
        if case .reserved = try #require(outcomes.first) { Issue.record("The key was reserved") }
    }

    @Test("A 429 of the project pauses the tenant's batches and loses no recipient")
    func quota() async throws {
        let world = try await World(.legacy)
        try await world.create((0..<5).map { "t\($0)" })
        let refusals = Observed(2)
        let fcm = world.fcm.upstream(of: MortalProcess())
        let refusing: ScriptedUpstream.Responder = { call in
            guard refusals.change({ count in (count > 0, count -= 1).0 }) else { return await fcm(call) }
            return SendResult(refused: .tenantRateExceeded, retryAfter: 60, upstreamCode: "429")
        }
        try await world.live(rounds: 12, answering: refusing)
        let batch = try await world.batch()
        #expect(batch.counts.accepted + batch.counts.waiting == 5 && batch.counts.rejected == 0)
    }

    @Test("A 429 that another replica met pauses batches and live sends of the project's tenants")
    func sharedPause() async throws {
        let world = try await World(.legacy)
        try await world.create(["a"])
        let elsewhere = ProjectPause(project: "legacy/other", rest: .seconds(600), permille: 500)
        try await world.store.add(elsewhere)
        try await world.store.add(ProjectPause(project: "legacy/acme", rest: .seconds(600), permille: 500))
        try await world.live(rounds: 3)
        #expect(world.paused.current == [world.tenant] && world.fcm.total == 0)
        #expect(try await world.batch().counts.waiting == 1)
    }

    @Test("A refused credential pauses the batch, which continues with another one")
    func credential() async throws {
        var world = try await World(.legacy)
        try await world.create(["a"])
        try await world.live(
            rounds: 2,
            answering: { _ in SendResult(refused: .upstreamCredentials, upstreamCode: "401") }
        )
        var batch = try await world.batch()
        #expect(batch.state == .paused && batch.reason == .upstreamCredentials && batch.counts.waiting == 1)
        try await world.live()
        #expect(try await world.batch().state == .paused)
        let credential = try StoredCredential(
            sealing: LegacyCredential(serverKey: .sample("another"), endpoint: nil),
            tenant: world.tenant,
            salt: [1],
            version: 1,
            under: .sample(),
            at: .sample
        )
        try await world.apply(.putCredential(credential))
        try await world.live()
        batch = try await world.batch()
        #expect(batch.state == .finished && world.fcm.total == 1)
    }

    @Test("A batch whose key has ended pauses, unless the key has a successor of its name")
    func keys() async throws {
        let world = try await World()
        try await world.create(["a"]) { $0.keyID = "unknown" }
        try await world.live()
        var batch = try await world.batch()
        #expect(batch.state == .paused && batch.reason == .keyRevoked)
        _ = try await world.store.apply(.resume(keyID: "key"), to: "batch", of: world.tenant)
        try await world.live()
        batch = try await world.batch()
        #expect(batch.state == .finished && world.fcm.total == 1)
    }

    @Test("What is left of a batch when its time ends has expired, and nothing more is sent")
    func expired() async throws {
        let world = try await World()
        try await world.create(["a", "b"]) { $0.options.lifetimeSeconds = 30 }
        try await world.live(
            rounds: 1,
            answering: { _ in SendResult(refused: .upstreamUnavailable, upstreamCode: "503") }
        )
        world.clock.advance(by: .seconds(60))
        try await world.live()
        let batch = try await world.batch()
        #expect(batch.state == .expired && batch.counts.expired == 2 && world.fcm.total == 0)
    }

    @Test("A batch that is cancelled while its slice is taken over keeps what is known")
    func cancelled() async throws {
        let tokens = (0..<10).map { "t\($0)" }
        let world = try await World()
        try await world.create(tokens)
        let process = MortalProcess(dyingAfter: 16)
        try await world.live(process)
        #expect(process.isDead && world.fcm.total > 0)
        _ = try await world.store.apply(.cancel(.caller), to: "batch", of: world.tenant)
        let total = world.fcm.total
        try await world.live()
        let counts = try await world.batch().counts
        #expect(world.fcm.total == total && counts.waiting == 0 && counts.cancelled > 0)
        #expect(counts.accepted + counts.unknown + counts.cancelled == tokens.count)
    }

    @Test("A store that fails amid a slice strands nothing, and what it did not keep is unknown")
    func storeFailure() async throws {
        let world = try await World(.legacy)
        try await world.create(["a"])
        let fcm = world.fcm.upstream(of: MortalProcess())
        let database = world.database
        let failing: ScriptedUpstream.Responder = { call in
            let result = await fcm(call)
            database.refuse()
            return result
        }
        try await world.live(answering: failing, afterEach: { database.refuse(false) })
        let batch = try await world.batch()
        #expect(batch.state == .finished && batch.counts.unknown == 1 && world.fcm.total == 1)
    }

    @Test("A topic of a tenant waits for the tenant's turn")
    func topics() async throws {
        let world = try await World()
        try await world.create(["news"], kind: .topic, id: "one")
        try await world.create(["news"], kind: .topic, id: "two")
        try await world.live(rounds: 1)
        #expect(world.fcm.count("news") == 1)
        try await world.live()
        #expect(world.fcm.count("news") == 2)
        #expect(try await world.batch("two").state == .finished)
    }
}
