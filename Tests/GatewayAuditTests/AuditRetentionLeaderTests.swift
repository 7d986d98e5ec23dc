import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayAudit

@Suite("What a leader that was paused makes of records that another one has removed", .timeLimit(.minutes(10)))
struct AuditRetentionLeaderTests {
    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))
    private let clock = ManualClock()
    private let metrics = TestMetrics()
    private let lead = InMemoryLeadership()

    /// Sixty days with forty records each, in a chain that is open.
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

    /// How many records a pass removes whose store does something before it reads records first.
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

    @Test("It resigns, removes nothing, and takes nobody for an intruder")
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
        // Whoever leads goes on from there.
        #expect(try await self.pass() > 0)
    }

    @Test("A replica that takes the lead later removes from then on")
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

    @Test("Records that are gone without a truncation marker are an alarm all the same")
    func tampered() async throws {
        _ = try await self.fill()
        let store = self.store
        let removed = try await self.pass { store.tamper { $0.records.removeAll { $0.sequence == 100 } } }
        #expect(removed == 0)
        #expect(await self.lead.isHeld() == false)
        #expect(try self.isAlarmed)
    }
}

/// A lead that is had at the last of some questions.
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
