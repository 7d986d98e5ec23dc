import GatewayAudit
import GatewayTestKit
import Logging
import Testing

/// An audit with a checkpoint after every few records, in a store and in a second sink.
///
/// The first chain has six records. The second has four rounds of four records, each under a checkpoint.
struct SignedAudit {
    static let sealer = AuditSealer(auditKey: .sample("audit"))

    let fixture: AuditFixture
    let signer: AuditSigner
    private let checkpointer: AuditCheckpointer
    private let sink = CollectingSink()

    var store: InMemoryAuditStore { self.fixture.store }
    var publicKey: AuditPublicKey { self.signer.publicKey }

    /// Creates the audit and removes the first `removed` records of its first chain.
    init(removing removed: Int = 0) async throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
        self.fixture = try await AuditFixture()
        self.checkpointer = AuditCheckpointer.sample(self.fixture.store, self.signer)
        let feeder = AuditSinkFeeder(
            sink: self.sink,
            name: "gateway",
            store: self.fixture.store,
            publicKey: self.signer.publicKey,
            clock: ManualClock(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        var first = AuditChain(writer: 1)
        try await self.fixture.append(6, to: &first, state: .closed)
        if removed > 0 { try await self.remove(removed) }
        _ = await self.checkpointer.checkpoint()
        await feeder.deliver()
        var second = AuditChain(writer: 2)
        for round in 1...4 {
            try await self.fixture.append(4, to: &second, state: round == 4 ? .closed : .open)
            _ = await self.checkpointer.checkpoint()
            await feeder.deliver()
        }
    }

    private func remove(_ count: Int) async throws {
        let last = try #require(self.store.current.records.first { ($0.writer, $0.sequence) == (1, count) })
        let chain = AuditChain(writer: 1, sequence: count, hash: last.hash)
        try await self.store.remove(upTo: try self.signer.truncation(of: chain, at: .sample))
    }

    var delivered: [AuditLine] { self.sink.lines.current }
}

/// Keeps the lines written to it.
private final class CollectingSink: AuditSink {
    let lines = Observed<[AuditLine]>([])

    func resume() async throws(GatewayError) -> AuditSinkPlace { .unknown }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        self.lines.change { $0 += lines }
    }
}
