import GatewayCore
import GatewayTestKit
import Synchronization

/// A reader between whose first look at the heads and everything after it something happens.
final class InterposedReader: AuditReader {
    private let store: InMemoryAuditStore
    private let event: @Sendable () async -> Void
    private let hasHappened = Atomic(false)

    init(_ store: InMemoryAuditStore, afterFirstHeads event: @escaping @Sendable () async -> Void) {
        self.store = store
        self.event = event
    }

    func heads() async throws(GatewayError) -> [AuditHead] {
        let heads = try await self.store.heads()
        if !self.hasHappened.exchange(true, ordering: .relaxed) { await self.event() }
        return heads
    }

    func records(of writer: Int, after sequence: Int, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord] {
        try await self.store.records(of: writer, after: sequence, limit: limit)
    }

    func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.store.writersWithRecords()
    }
}
