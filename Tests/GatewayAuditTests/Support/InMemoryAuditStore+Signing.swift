import GatewayAudit
import GatewayTestKit
import Logging

extension InMemoryAuditStore {
    /// Lets the chains' ends be others.
    func use(_ heads: [AuditHead]) {
        self.tamper { $0.heads = heads }
    }

    /// Lets the truncations be others.
    func use(_ truncations: [AuditTruncation]) {
        self.tamper { $0.signatures.truncations = truncations }
    }

    /// Makes the first checkpoint, of the ends and truncations that there are.
    func sign(_ signer: AuditSigner, _ sealer: AuditSealer) async throws {
        let checkpointer = AuditCheckpointer(
            store: self,
            signer: signer,
            sealer: sealer,
            clock: ManualClock(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        // Not prepared, for no gateway starts on truncations without a checkpoint.
        guard await checkpointer.checkpoint() else { throw SampleError(what: "checkpoint") }
    }
}
