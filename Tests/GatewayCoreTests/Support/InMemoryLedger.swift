import GatewayCore
import GatewayTestKit
import Logging
import Synchronization

/// Checkpoints in memory, for chains that only have ends.
final class InMemoryLedger: AuditLedgerStore, AuditReader {
    private struct State {
        var ledger = AuditLedger()
        var heads: [AuditHead] = []
    }

    private let state = Mutex(State())

    /// Lets the chains' ends be others.
    func use(_ heads: [AuditHead]) {
        self.state.withLock { $0.heads = heads }
    }

    /// Changes what is kept behind everybody's back.
    func tamper(_ body: (inout AuditLedger) -> Void) {
        self.state.withLock { body(&$0.ledger) }
    }

    /// Lets the cuts be others.
    func use(_ cuts: [AuditCut]) {
        self.state.withLock { $0.ledger.cuts = cuts }
    }

    /// The first checkpoint, of these ends and of the cuts.
    func sign(_ heads: [AuditHead], _ signer: AuditSigner, _ sealer: AuditSealer) async throws {
        self.use(heads)
        let checkpointer = AuditCheckpointer(
            store: self,
            reader: self,
            signer: signer,
            sealer: sealer,
            clock: ManualClock(),
            keptCount: 0,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        // Not prepared, for no gateway starts on cuts without a checkpoint.
        guard await checkpointer.checkpoint(delivered: 0) else { throw SampleError(what: "checkpoint") }
    }

    func heads() async throws(GatewayError) -> [AuditHead] { self.state.withLock { $0.heads } }

    func ledger() async throws(GatewayError) -> AuditLedger { self.state.withLock { $0.ledger } }

    func cuts() async throws(GatewayError) -> [AuditCut] { self.state.withLock { $0.ledger.cuts } }

    func append(
        _ checkpoint: SignedCheckpoint,
        thinnedBy content: AuditCheckpoint?,
        end: CheckpointEnd
    ) async throws(GatewayError) {
        self.state.withLock { state in
            state.ledger.checkpoints.append(checkpoint)
            state.ledger.checkpoints.sort { $0.number < $1.number }
            state.ledger.end = end
            guard let content else { return }
            state.ledger.checkpoints.removeAll { !content.keeps($0.number) }
        }
    }

    func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        self.state.withLock { Array($0.ledger.checkpoints.filter { $0.number > number }.prefix(limit)) }
    }

    func records(of writer: Int, after sequence: Int, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord] {
        []
    }
    func writersWithRecords() async throws(GatewayError) -> [Int] { [] }
    func walk(_ walker: AuditWalker, limit: Int) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        (walker, 0)
    }
    func remove(upTo cut: AuditCut) async throws(GatewayError) {}
    func timeline(maxLength: Duration) async throws(GatewayError) -> [AuditTimePiece] { [] }
    func firstMisfiled() async throws(GatewayError) -> AuditPosition? { nil }
    func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool { true }
}
