import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayCore

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

    private func checkpointer(_ metrics: TestMetrics? = nil) -> AuditCheckpointer {
        AuditCheckpointer(
            store: self.store,
            signer: self.signer,
            sealer: self.sealer,
            clock: self.clock,
            keptCount: 0,
            metrics: metrics.map { GatewayMetrics(factory: $0) } ?? GatewayMetrics(),
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
            #expect(await leader.checkpoint(delivered: 0))
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
        #expect(await leader.checkpoint(delivered: 0))
        self.store.tamper { $0.signatures.checkpoints[$0.signatures.checkpoints.count - 1].signature[0] ^= 1 }
        await follower.follow()
        #expect(try self.time(.auditLastCheckpoint) == first)
    }

    @Test("The second sink's time moves on while nothing is written, and stands still while it fails")
    func sink() async throws {
        let sink = FailingSink()
        let feeder = AuditSinkFeeder(
            sink: sink,
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
        #expect(await checkpointer.checkpoint(delivered: 0))
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
