import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayAudit

@Suite("Metrics of audit checkpoints")
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

    @Test("A follower's gauge shows the latest checkpoint's time, or the present if it covers everything")
    func follower() async throws {
        let (leader, follower) = (self.checkpointer(), self.checkpointer(self.metrics))
        var chain = AuditChain(writer: 1)
        try await self.write(to: &chain)
        _ = try await leader.prepare()
        _ = try await follower.prepare()
        // Twelve intervals of ten seconds; records are written only in the first six.
        for number in 1...12 {
            self.clock.advance(by: .seconds(10))
            if number <= 6 { try await self.write(to: &chain) }
            #expect(await leader.checkpoint())
            let signed = self.clock.now()
            self.clock.advance(by: .seconds(1))
            if number <= 6 {
                // Newer records exist, so the gauge stays at the checkpoint's time.
                try await self.write(to: &chain)
                await follower.follow()
                #expect(try self.time(.auditLastCheckpoint) == signed, "\(number)")
            } else {
                await follower.follow()
                #expect(try self.time(.auditLastCheckpoint) == self.clock.now(), "\(number)")
            }
        }
        // Records are written, but no checkpoint is signed.
        let last = self.clock.now()
        for _ in 1...3 {
            try await self.write(to: &chain)
            self.clock.advance(by: .seconds(60))
            await follower.follow()
            #expect(try self.time(.auditLastCheckpoint) == last)
        }
    }

    @Test("A forged checkpoint does not move a follower's gauge")
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

    /// Removes the first `count` remaining records of chain 1, as retention does.
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

    @Test("Starts while retention removes records raise no alarm", arguments: [1, 2, 7])
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

    @Test("A start accepts the concurrent removal of a whole chain, and raises the alarm for a missing record")
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
        "An alarm from the check of chain ends clears when a later check passes; any other alarm stays",
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

    @Test("A paused leader raises no alarm if another leader has removed old checkpoints and signed a new one")
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

    @Test("The second sink's gauge advances while nothing is written, and stops while the sink fails")
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

/// A sink that accepts everything until `fails` is set.
private final class FailingSink: AuditSink {
    let fails = Observed(false)

    func resume() async throws(GatewayError) -> AuditSinkPlace { .begun }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        if self.fails.current { throw GatewayError(.storeUnavailable, "The sink fails, as it was told to") }
    }
}
