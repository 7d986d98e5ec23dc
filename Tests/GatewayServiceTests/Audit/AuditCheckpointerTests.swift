import GatewayCore
import GatewayStorage
import GatewayTestKit
import MetricsTestKit
import ServiceLifecycle
import Testing

@testable import GatewayService

struct AuditCheckpointerTests {
    /// Another replica's checkpointer.
    private static func checkpointer(_ fixture: AuditTrailFixture) -> AuditCheckpointer {
        AuditCheckpointer(
            store: fixture.store,
            signer: fixture.signer,
            sealer: fixture.sealer,
            clock: fixture.clock,
            logger: AuditTrailFixture.logger
        )
    }

    /// The fixture's replica with a leadership.
    private static func service(_ fixture: AuditTrailFixture, _ lead: InMemoryLeadership) -> AuditCheckpointService {
        let logger = AuditTrailFixture.logger
        let closer = AuditChainCloser(
            store: fixture.store,
            registry: fixture.store,
            replicas: Replicas(
                id: ReplicaID(text: "one"),
                store: SQLReplicaStore(database: fixture.database, masterKey: "key"),
                logger: logger
            ),
            sealer: fixture.sealer,
            clock: fixture.clock,
            logger: logger
        )
        return AuditCheckpointService(
            checkpointer: fixture.checkpointer,
            feeder: nil,
            interval: .seconds(86_400),
            leader: AuditLeader(leadership: lead, closer: closer, logger: logger)
        )
    }

    @Test("A checkpoint is written only if something is new, and leaves out closed chains")
    func onlyNews() async throws {
        try await AuditTrailFixture.with { fixture in
            #expect(try await fixture.store.allCheckpoints().count == 1)
            #expect(await fixture.checkpointer.checkpoint())
            #expect(try await fixture.store.allCheckpoints().count == 1)
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            #expect(await fixture.checkpointer.checkpoint())
            #expect(await fixture.checkpointer.checkpoint())
            let last = try #require(try await fixture.store.signatures().latest?.content)
            #expect(last.number == 2)
            #expect(last.heads.map(\.sequence) == [3])
            // A closed chain is settled and no longer listed.
            try await fixture.write(0, to: &chain, state: .closed)
            #expect(await fixture.checkpointer.checkpoint())
            let settled = try #require(try await fixture.store.signatures().latest?.content)
            #expect(settled.settledWriter == 1 && settled.heads.isEmpty)
            #expect(try await fixture.checkpointer.prepare() == 3)
        }
    }

    @Test("A leader that was paused writes no duplicate checkpoint, and reads the latest before its next")
    func pausedLeader() async throws {
        try await AuditTrailFixture.with { fixture in
            let other = Self.checkpointer(fixture)
            #expect(try await other.prepare() == 1)
            var chain = AuditChain(writer: 1)
            for number in 2...3 {
                try await fixture.write(1, to: &chain)
                #expect(await other.checkpoint(), "\(number)")
            }
            let row = try await fixture.store.signatures()
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint() == false)
            #expect(try await fixture.store.signatures() == row)
            #expect(await fixture.checkpointer.checkpoint())
            #expect(try await fixture.store.allCheckpoints().map(\.number) == [1, 2, 3, 4])
            #expect(try await fixture.verify() == .intact(records: 3))
            // The other leader meets the same conflict.
            try await fixture.write(1, to: &chain)
            #expect(await other.checkpoint() == false)
            #expect(await other.checkpoint())
            #expect(try await fixture.verify() == .intact(records: 4))
        }
    }

    @Test("A leader whose checkpoint number is taken resigns, and writes none until it leads again")
    func conflict() async throws {
        try await AuditTrailFixture.with { fixture in
            func numbers() async throws -> [Int] { try await fixture.store.allCheckpoints().map(\.number) }
            let (first, second) = (InMemoryLeadership(), InMemoryLeadership())
            let service = Self.service(fixture, first)
            var chain = AuditChain(writer: 1)
            try await fixture.write(1, to: &chain)
            await service.checkpoint()
            #expect(try await numbers() == [1, 2])
            #expect(await first.isHeld())

            let other = Self.checkpointer(fixture)
            #expect(try await other.prepare() == 2)
            try await fixture.write(1, to: &chain)
            #expect(await other.checkpoint())
            try await fixture.write(1, to: &chain)
            await service.checkpoint()
            #expect(try await numbers() == [1, 2, 3])
            #expect(await first.isHeld() == false)
            await service.checkpoint()
            #expect(try await numbers() == [1, 2, 3])

            await Self.service(fixture, second).checkpoint()
            #expect(try await numbers() == [1, 2, 3, 4])
            #expect(await second.isHeld())
            #expect(try await fixture.verify() == .intact(records: 3))
        }
    }

    @Test("Each replica's sink is verified up to its own position, and a new one starts at the furthest")
    func places() async throws {
        try await AuditTrailFixture.with { fixture in
            let folder = fixture.directory.path
            func feeder(_ name: String) -> AuditSinkFeeder {
                fixture.feeder(AuditSinkFile(path: "\(folder)/\(name).jsonl", name: name), name: name)
            }
            func verdict(_ name: String) async throws -> AuditVerifier.Verdict {
                let sink = try fixture.read("\(folder)/\(name).jsonl")
                #expect(sink.name == name)
                var evidence = sink.evidence
                evidence.required = try await fixture.store.sinks()[name] ?? 0
                return try await fixture.verify(evidence: evidence)
            }
            var chain = AuditChain(writer: 1)
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint())
            for name in ["leader", "stopped"] { await feeder(name).deliver() }
            // The stopped sink gets none of these.
            for _ in 1...3 {
                try await fixture.write(1, to: &chain)
                #expect(await fixture.checkpointer.checkpoint())
                await feeder("leader").deliver()
            }
            #expect(try await fixture.store.sinks() == ["leader": 5, "stopped": 2])
            for name in ["leader", "stopped"] { #expect(try await verdict(name) == .intact(records: 4)) }
            // Checkpoints cut from the leader's sink are missed.
            let lines = try fixture.lines("\(folder)/leader.jsonl")
            try fixture.write(Array(lines.prefix(3)), to: "\(folder)/leader.jsonl")
            let reason = "the sink had it, and has it no more"
            #expect(try await verdict("leader") == .checkpointTampered(number: 5, reason: reason))

            let late = feeder("late")
            await late.deliver()
            #expect(late.delivered == 5)
            #expect(try fixture.read("\(folder)/late.jsonl").records == 0)
        }
    }

    @Test("A follower's sink is fed and its delivery time advances while another replica writes checkpoints")
    func follower() async throws {
        try await AuditTrailFixture.with { fixture in
            let other = Self.checkpointer(fixture)
            #expect(try await other.prepare() == 1)
            let (lead, metrics) = (InMemoryLeadership(), TestMetrics())
            await lead.resign()
            let feeder = fixture.feeder(
                AuditSinkFile(path: "\(fixture.directory.path)/audit.jsonl", name: "follower"),
                name: "follower",
                metrics: GatewayMetrics(factory: metrics)
            )
            let service = Self.service(fixture, lead)
            func delivered() throws -> Double? {
                try metrics.expectMeter(GatewayMetric.auditSinkDelivered.rawValue).lastValue
            }
            var chain = AuditChain(writer: 1)
            for number in 2...4 {
                fixture.clock.advance(by: .seconds(60))
                try await fixture.write(1, to: &chain)
                #expect(await other.checkpoint())
                await service.checkpoint()
                await feeder.deliver()
                #expect(feeder.delivered == number)
                #expect(try delivered() == Double(fixture.clock.now().microseconds) / 1_000_000)
            }
        }
    }

    @Test("A checkpoint leaves out a chain with a forged head")
    func forgedHead() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            var forged = AuditChain(writer: 2)
            let record = forged.append(fixture.record())
            let head = AuditSealer(auditKey: .sample("forger")).head(of: forged, state: .closed)
            try await fixture.store.append([record], head: head)
            #expect(await fixture.checkpointer.checkpoint())
            let last = try #require(try await fixture.store.signatures().latest?.content)
            #expect(last.heads.map(\.writer) == [1] && last.settledWriter == 0)
        }
    }

    @Test("The first checkpoint does not wait for an interval", .timeLimit(.minutes(10)))
    func first() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            #expect(try await fixture.store.allCheckpoints().count == 1)
            let service = AuditCheckpointService(
                checkpointer: fixture.checkpointer,
                feeder: nil,
                interval: .seconds(86_400)
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await service.run() }
                // Stopping the service writes a checkpoint too, so this one must appear before.
                while try await fixture.store.allCheckpoints().count < 2 { await Task.yield() }
                group.cancelAll()
            }
        }
    }
}
