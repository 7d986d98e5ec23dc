import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayAudit

@Suite("Audit retention and leadership", .timeLimit(.minutes(10)))
struct AuditRetentionLeaderTests {
    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))
    private let clock = ManualClock()
    private let metrics = TestMetrics()
    private let lead = InMemoryLeadership()

    /// Writes an open chain with forty records a day for sixty days.
    private func fill() async throws -> [ChainedAuditRecord] {
        var chain = AuditChain(writer: 1)
        var records: [ChainedAuditRecord] = []
        for _ in 1...60 {
            for _ in 1...40 {
                var record = AuditRecord.sample()
                record.time = self.clock.now()
                records.append(chain.append(record))
            }
            self.clock.advance(by: .seconds(86_400))
        }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .open))
        return records
    }

    private func checkpointer(_ signer: AuditSigner) -> AuditCheckpointer {
        AuditCheckpointer.sample(self.store, signer, clock: self.clock)
    }

    /// Runs a pass, calls `beforeRows` before its first read of records, and returns the number of removed records.
    private func pass(_ beforeRows: @escaping @Sendable () async -> Void = {}) async throws -> Int {
        let audit = AuditLog.sample(store: InMemoryAuditStore())
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let service = AuditRetentionService(
            store: InterposedAuditStore(self.store, beforeRows: { if $0 == 1 { await beforeRows() } }),
            signer: signer,
            sealer: self.sealer,
            audit: audit,
            checkpointer: self.checkpointer(signer),
            clock: self.clock,
            retention: .seconds(30 * 86_400),
            leadership: self.lead,
            alarm: AuditAlarm(metrics: GatewayMetrics(factory: self.metrics)),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        return try await audit.whileRunning { await service.pass() }
    }

    private var isAlarmed: Bool {
        get throws { try self.metrics.expectMeter(GatewayMetric.auditChanged.rawValue).lastValue == 1 }
    }

    @Test("A leader resigns and raises no alarm if another replica has removed records meanwhile")
    func overtaken() async throws {
        let last = try await self.fill()[199]
        let (store, signer) = (self.store, try AuditSigner(signingKey: .sample("signing")))
        let place = AuditChain(writer: 1, sequence: last.sequence, hash: last.hash)
        let truncation = try signer.truncation(of: place, at: self.clock.now())
        let removed = try await self.pass { try? await store.remove(upTo: truncation) }
        #expect(removed == 0)
        #expect(await self.lead.isHeld() == false)
        #expect(try !self.isAlarmed)
        #expect(self.store.current.signatures.truncations == [truncation])
        // The next leader continues from there.
        #expect(try await self.pass() > 0)
    }

    @Test("A replica removes records once it becomes the leader")
    func laterLead() async throws {
        _ = try await self.fill()
        let audit = AuditLog.sample(store: InMemoryAuditStore())
        let (store, lead) = (self.store, LateLeadership(refusals: 5))
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let service = AuditRetentionService(
            store: store,
            signer: signer,
            sealer: self.sealer,
            audit: audit,
            checkpointer: self.checkpointer(signer),
            clock: self.clock,
            retention: .seconds(30 * 86_400),
            leadership: lead,
            leadInterval: .milliseconds(1),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try await audit.whileRunning {
            let running = Task { try await service.run() }
            try await store.wait { !$0.signatures.truncations.isEmpty }
            running.cancel()
            try await running.value
        }
        #expect(lead.refusals.current == 0)
    }

    @Test("Records that are missing without a truncation marker raise the alarm")
    func tampered() async throws {
        _ = try await self.fill()
        let store = self.store
        let removed = try await self.pass { store.tamper { $0.records.removeAll { $0.sequence == 100 } } }
        #expect(removed == 0)
        #expect(await self.lead.isHeld() == false)
        #expect(try self.isAlarmed)
    }
}

/// A leadership that is held after some refusals.
private final class LateLeadership: Leadership {
    let refusals: Observed<Int>

    init(refusals: Int) {
        self.refusals = Observed(refusals)
    }

    func isHeld() async -> Bool {
        self.refusals.change { refusals in
            defer { refusals = max(0, refusals - 1) }
            return refusals == 0
        }
    }

    func resign() async {}
}
