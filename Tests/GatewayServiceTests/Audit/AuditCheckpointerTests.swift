import GatewayCore
import GatewayStorage
import GatewayTestKit
import ServiceLifecycle
import Testing

@testable import GatewayService

struct AuditCheckpointerTests {
    /// Another replica's.
    private static func checkpointer(_ fixture: AuditTrailFixture) -> AuditCheckpointer {
        AuditCheckpointer(
            store: fixture.store,
            signer: fixture.signer,
            sealer: fixture.sealer,
            clock: fixture.clock,
            logger: AuditTrailFixture.logger
        )
    }

    /// The fixture's replica, with a lead.
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

    @Test("A checkpoint is made when there is something new, and only then")
    func onlyNews() async throws {
        try await AuditTrailFixture.with { fixture in
            #expect(try await fixture.store.allCheckpoints().count == 1)
            #expect(await fixture.checkpointer.checkpoint(delivered: 0))
            #expect(try await fixture.store.allCheckpoints().count == 1)
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            #expect(await fixture.checkpointer.checkpoint(delivered: 1))
            #expect(await fixture.checkpointer.checkpoint(delivered: 1))
            let last = try #require(try await fixture.store.signatures().latest?.content)
            #expect(last.number == 2 && last.delivered == 1)
            #expect(last.heads.map(\.sequence) == [3])
            // Closed, the chain is settled, and takes no room any more.
            try await fixture.write(0, to: &chain, state: .closed)
            #expect(await fixture.checkpointer.checkpoint(delivered: 1))
            let settled = try #require(try await fixture.store.signatures().latest?.content)
            #expect(settled.settledWriter == 1 && settled.heads.isEmpty)
            #expect(try await fixture.checkpointer.prepare() == 3)
        }
    }

    @Test("A leader that was paused makes no checkpoint twice, and reads the row anew before its next")
    func pausedLeader() async throws {
        try await AuditTrailFixture.with { fixture in
            let other = Self.checkpointer(fixture)
            #expect(try await other.prepare() == 1)
            var chain = AuditChain(writer: 1)
            for number in 2...3 {
                try await fixture.write(1, to: &chain)
                #expect(await other.checkpoint(delivered: 0), "\(number)")
            }
            let row = try await fixture.store.signatures()
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint(delivered: 0) == false)
            #expect(try await fixture.store.signatures() == row)
            #expect(await fixture.checkpointer.checkpoint(delivered: 0))
            #expect(try await fixture.store.allCheckpoints().map(\.number) == [1, 2, 3, 4])
            #expect(try await fixture.verify() == .intact(records: 3))
            // The other one finds out by the same conflict.
            try await fixture.write(1, to: &chain)
            #expect(await other.checkpoint(delivered: 0) == false)
            #expect(await other.checkpoint(delivered: 0))
            #expect(try await fixture.verify() == .intact(records: 4))
        }
    }

    @Test("A leader that finds another's checkpoint in the place of its own resigns, and waits until it leads again")
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
            #expect(await other.checkpoint(delivered: 0))
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

    @Test("While nobody knows what the second sink has, what was known still holds")
    func unknownDelivery() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint(delivered: 1))
            // As after a start with a sink that can't be reached.
            let feeder = fixture.feeder(AuditSinkFile(path: "\(fixture.directory.path)/none/audit.jsonl"))
            await feeder.deliver()
            #expect(feeder.delivered == nil)
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint(delivered: feeder.delivered))
            let last = try #require(try await fixture.store.signatures().latest?.content)
            #expect(last.number == 3 && last.delivered == 1)
            // A gateway without a sink says so.
            try await fixture.write(1, to: &chain)
            #expect(await fixture.checkpointer.checkpoint(delivered: 0))
            #expect(try await fixture.store.signatures().latest?.content?.delivered == 0)
        }
    }

    @Test("An end that is not genuine is not signed")
    func forgedHead() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            var forged = AuditChain(writer: 2)
            let record = forged.append(fixture.record())
            let head = AuditSealer(auditKey: .sample("forger")).head(of: forged, state: .closed)
            try await fixture.store.append([record], head: head)
            #expect(await fixture.checkpointer.checkpoint(delivered: 0))
            let last = try #require(try await fixture.store.signatures().latest?.content)
            #expect(last.heads.map(\.writer) == [1] && last.settledWriter == 0)
        }
    }

    @Test("The first checkpoint does not wait for the first interval to be over", .timeLimit(.minutes(10)))
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
                // The service's end makes a checkpoint too, so it has to be seen before.
                while try await fixture.store.allCheckpoints().count < 2 { await Task.yield() }
                group.cancelAll()
            }
        }
    }
}
