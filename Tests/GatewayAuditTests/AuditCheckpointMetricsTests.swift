import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayAudit

@Suite("What metrics say of the audit's checkpoints")
struct AuditCheckpointMetricsTests {
    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))
    private let signer: AuditSigner
    private let clock = ManualClock()
    private let metrics = TestMetrics()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    init() throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
    }

    private func checkpointer(
        _ metrics: TestMetrics? = nil,
        alarm: AuditAlarm? = nil,
        over store: (any AuditStore)? = nil
    ) -> AuditCheckpointer {
        let metrics = metrics.map { GatewayMetrics(factory: $0) } ?? GatewayMetrics()
        return AuditCheckpointer(
            store: store ?? self.store,
            signer: self.signer,
            sealer: self.sealer,
            clock: self.clock,
            alarm: alarm ?? AuditAlarm(metrics: metrics),
            metrics: metrics,
            logger: self.logger
        )
    }

    private func write(to chain: inout AuditChain) async throws {
        let record = chain.append(.sample())
        try await self.store.append([record], head: self.sealer.head(of: chain, state: .open))
    }

    private func time(_ metric: GatewayMetric) throws -> Timestamp? {
        try self.metrics.expectMeter(metric.rawValue).lastValue
            .map { Timestamp(microseconds: Int64(($0 * 1_000_000).rounded())) }
    }

    @Test("A follower shows the leader's latest checkpoint, and the present where that covers everything")
    func follower() async throws {
        let (leader, follower) = (self.checkpointer(), self.checkpointer(self.metrics))
        var chain = AuditChain(writer: 1)
        try await self.write(to: &chain)
        _ = try await leader.prepare()
        _ = try await follower.prepare()
        // Twelve intervals of ten seconds: something is written in the first half of them only.
        for number in 1...12 {
            self.clock.advance(by: .seconds(10))
            if number <= 6 { try await self.write(to: &chain) }
            #expect(await leader.checkpoint())
            let signed = self.clock.now()
            self.clock.advance(by: .seconds(1))
            if number <= 6 {
                // Behind a checkpoint that is not the last word, the gauge stays at that one.
                try await self.write(to: &chain)
                await follower.follow()
                #expect(try self.time(.auditLastCheckpoint) == signed, "\(number)")
            } else {
                await follower.follow()
                #expect(try self.time(.auditLastCheckpoint) == self.clock.now(), "\(number)")
            }
        }
        // Nothing is signed any more, and something is written.
        let last = self.clock.now()
        for _ in 1...3 {
            try await self.write(to: &chain)
            self.clock.advance(by: .seconds(60))
            await follower.follow()
            #expect(try self.time(.auditLastCheckpoint) == last)
        }
    }

    @Test("A checkpoint that is not genuine moves no follower's gauge")
    func forged() async throws {
        let follower = self.checkpointer(self.metrics)
        var chain = AuditChain(writer: 1)
        try await self.write(to: &chain)
        _ = try await follower.prepare()
        let first = self.clock.now()
        self.clock.advance(by: .seconds(60))
        try await self.write(to: &chain)
        let leader = self.checkpointer()
        _ = try await leader.prepare()
        #expect(await leader.checkpoint())
        self.store.tamper { $0.checkpoints[$0.checkpoints.count - 1].signature[0] ^= 1 }
        await follower.follow()
        #expect(try self.time(.auditLastCheckpoint) == first)
    }

    // MARK: The alarm

    private var isAlarmed: Bool {
        get throws { try self.metrics.expectMeter(GatewayMetric.auditChanged.rawValue).lastValue == 1 }
    }

    /// Removes the first records of the first chain that are left, as retention does.
    private func removeFirst(_ count: Int) {
        guard let last = self.store.current.records.filter({ $0.writer == 1 }).dropFirst(count - 1).first,
            let truncation = try? self.signer.truncation(
                of: AuditChain(writer: 1, sequence: last.sequence, hash: last.hash),
                at: self.clock.now()
            )
        else { return }
        self.store.tamper { contents in
            contents.records.removeAll { $0.writer == 1 && $0.sequence <= truncation.sequence }
            contents.signatures.truncations = [truncation]
        }
    }

    @Test("A hundred starts while old records are removed raise no alarm", arguments: [1, 2, 7])
    func startsDuringRetention(step: Int) async throws {
        var chain = AuditChain(writer: 1)
        let records = (1...3_000).map { _ in chain.append(.sample()) }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .open))
        _ = try await self.checkpointer().prepare()
        let moving = InterposedAuditStore(self.store, beforeRows: { _ in self.removeFirst(step) })
        for number in 1...100 {
            _ = try await self.checkpointer(self.metrics, over: moving).prepare()
            #expect(try !self.isAlarmed, "start \(number)")
        }
        #expect(self.store.current.records.count <= 3_000 - 200 * step)
    }

    @Test("A start finds that the whole of a chain is removed at the moment of its look, and that a record is gone")
    func lookDuringRetention() async throws {
        var chain = AuditChain(writer: 1)
        let records = (1...10).map { _ in chain.append(.sample()) }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .closed))
        var second = AuditChain(writer: 2)
        let others = (1...10).map { _ in second.append(.sample()) }
        try await self.store.append(others, head: self.sealer.head(of: second, state: .open))
        _ = try await self.checkpointer().prepare()
        let moving = InterposedAuditStore(self.store, beforeRows: { _ in self.removeFirst(10) })
        _ = try await self.checkpointer(self.metrics, over: moving).prepare()
        #expect(try !self.isAlarmed)
        self.store.tamper { $0.records.removeAll { ($0.writer, $0.sequence) == (2, 1) } }
        _ = try await self.checkpointer(self.metrics).prepare()
        #expect(try self.isAlarmed)
    }

    @Test(
        "An alarm by a look at the ends is over when a later look finds nothing; another stays",
        arguments: [false, true]
    )
    func laterLook(isRaisedForGood: Bool) async throws {
        var chain = AuditChain(writer: 1)
        let records = (1...10).map { _ in chain.append(.sample()) }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .open))
        let alarm = AuditAlarm(metrics: GatewayMetrics(factory: self.metrics))
        let checkpointer = self.checkpointer(alarm: alarm)
        _ = try await checkpointer.prepare()
        #expect(try !self.isAlarmed)
        self.store.tamper { $0.records.removeFirst() }
        _ = try await checkpointer.prepare()
        #expect(try self.isAlarmed)
        if isRaisedForGood { alarm.raise() }
        let service = AuditCheckpointService(checkpointer: checkpointer, feeder: nil, interval: .seconds(10))
        await service.checkpoint()
        #expect(try self.isAlarmed)
        self.store.tamper { $0.records.insert(records[0], at: 0) }
        await service.checkpoint()
        #expect(try self.isAlarmed == isRaisedForGood)
    }

    @Test("A leader that was paused takes another's checkpoint for no intruder's where old ones were to be removed")
    func pausedLeader() async throws {
        let (paused, other) = (self.checkpointer(self.metrics), self.checkpointer())
        var chain = AuditChain(writer: 1)
        _ = try await paused.prepare()
        for _ in 2...5 {
            self.clock.advance(by: .seconds(60))
            try await self.write(to: &chain)
            #expect(await paused.checkpoint())
        }
        self.clock.advance(by: .seconds(60))
        try await self.write(to: &chain)
        #expect(try await other.prepare() == 5)
        for checkpointer in [paused, other] { checkpointer.remove(before: self.clock.now()) }
        #expect(await other.checkpoint())
        #expect(self.store.current.checkpoints.map(\.number) == [5, 6])
        #expect(await paused.checkpoint() == false)
        #expect(try !self.isAlarmed)
        try await self.write(to: &chain)
        #expect(await paused.checkpoint())
        #expect(try !self.isAlarmed)
    }

    // MARK: The second sink

    @Test("The second sink's time moves on while nothing is written, and stands still while it fails")
    func sink() async throws {
        let sink = FailingSink()
        let feeder = AuditSinkFeeder(
            sink: sink,
            name: "gateway",
            store: self.store,
            publicKey: self.signer.publicKey,
            clock: self.clock,
            metrics: GatewayMetrics(factory: self.metrics),
            logger: self.logger
        )
        let checkpointer = self.checkpointer()
        var chain = AuditChain(writer: 1)
        try await self.write(to: &chain)
        _ = try await checkpointer.prepare()
        for _ in 1...3 {
            self.clock.advance(by: .seconds(60))
            await feeder.deliver()
            #expect(try self.time(.auditSinkDelivered) == self.clock.now())
        }
        let last = self.clock.now()
        sink.fails.change { $0 = true }
        try await self.write(to: &chain)
        #expect(await checkpointer.checkpoint())
        self.clock.advance(by: .seconds(60))
        await feeder.deliver()
        #expect(try self.time(.auditSinkDelivered) == last)
    }
}

/// A sink that takes everything until it fails.
private final class FailingSink: AuditSink {
    let fails = Observed(false)

    func resume() async throws(GatewayError) -> AuditSinkPlace { .begun }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        if self.fails.current { throw GatewayError(.storeUnavailable, "The sink fails, as it was told to") }
    }
}
