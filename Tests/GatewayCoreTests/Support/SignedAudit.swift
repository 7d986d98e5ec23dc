import GatewayCore
import GatewayTestKit
import Logging
import NIOCore
import Testing

/// An audit with a checkpoint after every few records, as a store, as exports and as a second sink.
///
/// The first chain has six records of `acme`. The second has four rounds of four records, of which the first and the last of
/// the third round are of `rare`.
struct SignedAudit {
    static let sealer = AuditSealer(auditKey: .sample("audit"))
    /// Between two rounds.
    static let round = Duration.seconds(60)

    let fixture: AuditFixture
    let signer: AuditSigner
    private let checkpointer: AuditCheckpointer
    private let sink = CollectingSink()

    var store: InMemoryAuditStore { self.fixture.store }
    var publicKey: AuditPublicKey { self.signer.publicKey }

    /// An audit whose second chain stands like this at the end, and in which so many records of the first were removed.
    init(_ state: AuditHead.State = .closed, removing removed: Int = 0) async throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
        self.fixture = try await AuditFixture()
        self.checkpointer = AuditCheckpointer(
            store: self.fixture.store,
            signer: self.signer,
            sealer: Self.sealer,
            clock: ManualClock(),
            keptCount: 0,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        let feeder = AuditSinkFeeder(
            sink: self.sink,
            store: self.fixture.store,
            publicKey: self.signer.publicKey,
            clock: ManualClock(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        var first = AuditChain(writer: 1)
        try await self.append(Array(repeating: "acme", count: 6), at: 0, to: &first, .closed)
        if removed > 0 { try await self.remove(removed) }
        _ = await self.checkpointer.checkpoint(delivered: feeder.delivered ?? 0)
        await feeder.deliver()
        var second = AuditChain(writer: 2)
        for round in 1...4 {
            let edge = round == 3 ? "rare" : "acme"
            try await self.append([edge, "acme", "acme", edge], at: round, to: &second, round == 4 ? state : .open)
            _ = await self.checkpointer.checkpoint(delivered: feeder.delivered)
            await feeder.deliver()
        }
    }

    private func append(
        _ tenants: [String],
        at round: Int,
        to chain: inout AuditChain,
        _ state: AuditHead.State
    ) async throws {
        var records: [ChainedAuditRecord] = []
        for tenant in tenants {
            var record = RecordChange.original
            record.tenant = tenant
            record.time = record.time.advanced(by: Self.round * round)
            record.requestID = "request \(chain.sequence + 1) of writer \(chain.writer)"
            records.append(chain.append(record))
        }
        try await self.store.append(records, head: Self.sealer.head(of: chain, state: state))
    }

    private func remove(_ count: Int) async throws {
        let last = try #require(self.store.current.records.first { ($0.writer, $0.sequence) == (1, count) })
        let chain = AuditChain(writer: 1, sequence: count, hash: last.hash)
        try await self.store.remove(upTo: try self.signer.truncation(of: chain, at: .sample))
    }

    /// The lines of an export.
    func export(_ head: AuditExportHead, publicKey: AuditPublicKey? = nil) async throws -> [AuditLine] {
        var lines: [AuditLine] = []
        let exporter = AuditExporter(
            store: self.store,
            sealer: Self.sealer,
            publicKey: publicKey ?? self.signer.publicKey
        )
        _ = try await exporter.export(head) { lines.append($0) }
        return lines
    }

    /// The lines of the sink.
    var delivered: [AuditLine] { self.sink.lines.current }

    /// What an export verifies as, by its text.
    static func verdict(
        onExport lines: [ByteBuffer],
        sealer: AuditSealer? = nil,
        publicKey: AuditPublicKey?
    ) -> (AuditVerifier.Verdict, AuditExportSummary)? {
        guard let first = lines.first, case .export(let head)? = AuditLine(first) else { return nil }
        var verifier = AuditExportVerifier(head, sealer: sealer, publicKey: publicKey)
        for text in lines.dropFirst() {
            guard let line = AuditLine(text) else {
                verifier.refuse("the line was changed")
                break
            }
            guard verifier.take(line) else { break }
        }
        let verdict = verifier.finish()
        return (verdict, verifier.summary)
    }
}

/// Keeps the lines that it is given.
private final class CollectingSink: AuditSink {
    let lines = Observed<[AuditLine]>([])

    func resume() async throws(GatewayError) -> AuditSinkPlace { .unknown }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        self.lines.change { $0 += lines }
    }
}
