import GatewayTestKit
import Logging
import MetricsTestKit
import Synchronization
import Testing

@testable import GatewayAudit

struct AuditChainCloserTests {
    private static let (alive, dead) = (ReplicaID(text: "alive"), ReplicaID(text: "dead"))

    private final class Fleet: ReplicaStore {
        let forgotten = Mutex<[Duration]>([])

        func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [Replicas.Sighting] { [] }

        func leave(_ id: ReplicaID) async throws(GatewayError) {}

        func removeSilent(for age: Duration) async throws(GatewayError) {
            self.forgotten.withLock { $0.append(age) }
        }
    }

    private let store = InMemoryAuditStore()
    private let fleet = Fleet()
    private let sealer = AuditSealer(auditKey: .sample("audit"))
    private let metrics = TestMetrics()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Begins a chain and returns it after its first record.
    private func begin(
        _ writer: Int,
        by replica: ReplicaID = Self.dead,
        state: AuditHead.State = .open
    ) async throws -> AuditChain {
        var chain = AuditChain(writer: writer)
        let record = chain.append(.sample())
        try await self.store.begin(record, head: self.sealer.head(of: chain, state: state), by: replica)
        return chain
    }

    /// A closer of the given store or `self.store`, `duration` after its replica's first heartbeat.
    private func closer(
        _ store: (any AuditStore)? = nil,
        after duration: Duration = .seconds(10)
    ) async -> AuditChainCloser {
        let time = Observed(Uptime.now)
        let replicas = Replicas(id: Self.alive, store: self.fleet, uptime: { time.current }, logger: self.logger)
        await replicas.beat()
        time.change { $0 += duration / 2 }
        await replicas.beat()
        time.change { $0 += duration / 2 }
        return AuditChainCloser(
            store: store ?? self.store,
            registry: self.store,
            replicas: replicas,
            sealer: self.sealer,
            clock: ManualClock(),
            metrics: GatewayMetrics(factory: self.metrics),
            logger: self.logger
        )
    }

    @Test("Only open chains of dead replicas are closed, and silent replicas are removed")
    func closes() async throws {
        for writer in 1...2 { _ = try await self.begin(writer, state: writer == 2 ? .closed : .open) }
        for writer in 3...4 { _ = try await self.begin(writer, by: Self.alive) }
        for _ in 1...2 { try await self.closer().closeDead() }
        #expect(self.store.current.heads.map(\.state) == [.recovered, .closed, .open, .open])
        let recovered = self.store.current.records(of: "audit.recovered")
        #expect(recovered.map(\.principal) == ["leader"])
        #expect(self.fleet.forgotten.withLock { $0 } == [.seconds(60), .seconds(60)])
        let name = GatewayMetric.auditChainsClosed.rawValue
        // Only the first of the two closers closed a chain.
        #expect(try self.metrics.expectCounter(name).totalValue == 1)
    }

    @Test("A chain closed for a dead replica is reported as abandoned until a later chain continues it")
    func abandoned() async throws {
        for writer in 1...2 { _ = try await self.begin(writer) }
        try await self.closer().closeDead()
        // The chain of an earlier process, closed by the next start of the same replica.
        var own = try await self.begin(3)
        let closing = own.append(.recovered(at: .sample))
        try await self.store.append([closing], head: self.sealer.head(of: own, state: .recovered))
        let verifier = AuditVerifier(store: self.store, sealer: self.sealer)
        let places = [1, 2].map { AuditChain.Position(writer: $0, sequence: 1) }
        #expect(try await verifier.report(isLive: false) == .init(.intact(records: 6), abandoned: places))

        var next = AuditChain(writer: 4)
        var opened = AuditRecord.sample("audit.opened")
        opened.continuesWriter = 1
        let record = next.append(opened)
        try await self.store.begin(record, head: self.sealer.head(of: next, state: .open), by: Self.alive)
        let report = try await verifier.report(isLive: true)
        #expect(report == .init(.intact(records: 7), abandoned: [places[1]]))
    }

    @Test("A replica without steady heartbeats for ten seconds declares no other replica dead", arguments: [9, 40])
    func unsteady(seconds: Int) async throws {
        _ = try await self.begin(1)
        try await self.closer(after: .seconds(seconds)).closeDead()
        #expect(self.store.current.heads.map(\.state) == [.open])
        #expect(self.fleet.forgotten.withLock { $0.isEmpty })
    }

    @Test("A chain whose seal is not genuine stays open")
    func forged() async throws {
        _ = try await self.begin(1)
        self.store.tamper { $0.heads[0].seal = [] }
        try await self.closer().closeDead()
        #expect(self.store.current.heads.map(\.state) == [.open])
    }

    @Test("A leader resigns and closes no chain if the chain's replica is still writing")
    func contradicted() async throws {
        let chain = try await self.begin(1)
        let (store, sealer) = (self.store, self.sealer)
        // The replica writes after the leader has read the heads.
        let contradicting = InterposedAuditStore(
            store,
            afterFirstHeads: {
                var chain = chain
                let record = chain.append(.sample("late"))
                try? await store.append([record], head: sealer.head(of: chain, state: .open))
            }
        )
        let lead = InMemoryLeadership()
        let leader = AuditLeader(leadership: lead, closer: await self.closer(contradicting), logger: self.logger)
        #expect(await leader.leads() == false)
        #expect(await lead.isHeld() == false)
        #expect(self.store.actions == ["sample", "late"])
        #expect(self.store.current.heads.map(\.state) == [.open])
    }

    @Test("A leader stays the leader if its store fails")
    func failing() async throws {
        _ = try await self.begin(1)
        self.store.refuse()
        let lead = InMemoryLeadership()
        let leader = AuditLeader(leadership: lead, closer: await self.closer(), logger: self.logger)
        #expect(await leader.leads())
        #expect(await lead.isHeld())
    }
}
