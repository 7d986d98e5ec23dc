import GatewayCore
import GatewayStorage
import Synchronization

/// A store's chains, in which something happens before records are read for the first time.
final class OvertakenReader: AuditReader {
    private let store: SQLiteAuditStore
    private let event: @Sendable () async -> Void
    private let hasHappened = Atomic(false)

    init(_ store: SQLiteAuditStore, _ event: @escaping @Sendable () async -> Void) {
        self.store = store
        self.event = event
    }

    func records(of writer: Int, after sequence: Int, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord] {
        if !self.hasHappened.exchange(true, ordering: .relaxed) { await self.event() }
        return try await self.store.records(of: writer, after: sequence, limit: limit)
    }

    func heads() async throws(GatewayError) -> [AuditHead] { try await self.store.heads() }

    func writersWithRecords() async throws(GatewayError) -> [Int] { try await self.store.writersWithRecords() }

    func walk(_ walker: AuditWalker, limit: Int) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        try await self.store.walk(walker, limit: limit)
    }
}
