import GatewayCore
import Synchronization

/// A ledger that removes records so many times, and fails from then on.
final class FailingLedger: AuditLedgerStore {
    private let ledger: any AuditLedgerStore
    private let left: Atomic<Int>

    init(_ ledger: any AuditLedgerStore, removals: Int) {
        self.ledger = ledger
        self.left = Atomic(removals)
    }

    func remove(upTo cut: AuditCut) async throws(GatewayError) {
        guard self.left.subtract(1, ordering: .relaxed).newValue >= 0 else {
            throw GatewayError(.storeUnavailable, "The store fails, as it was told to")
        }
        try await self.ledger.remove(upTo: cut)
    }

    func ledger() async throws(GatewayError) -> AuditLedger { try await self.ledger.ledger() }

    func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.ledger.checkpoints(after: number, limit: limit)
    }

    func cuts() async throws(GatewayError) -> [AuditCut] { try await self.ledger.cuts() }

    func firstMisfiled() async throws(GatewayError) -> AuditPosition? { try await self.ledger.firstMisfiled() }

    func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool { try await self.ledger.isFiled(place) }

    func append(
        _ checkpoint: SignedCheckpoint,
        thinnedBy content: AuditCheckpoint?,
        end: CheckpointEnd
    ) async throws(GatewayError) {
        try await self.ledger.append(checkpoint, thinnedBy: content, end: end)
    }

    func timeline(maxLength: Duration) async throws(GatewayError) -> [AuditTimePiece] {
        try await self.ledger.timeline(maxLength: maxLength)
    }
}
