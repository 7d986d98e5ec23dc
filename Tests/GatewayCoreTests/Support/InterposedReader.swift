import GatewayCore
import GatewayTestKit
import Synchronization

/// A reader between whose first look at the heads and everything after it something happens, or before each of its walks.
final class InterposedReader: AuditReader {
    private let store: InMemoryAuditStore
    private let event: @Sendable () async -> Void
    private let beforeWalk: @Sendable (_ number: Int) async -> Void
    private let hasHappened = Atomic(false)
    private let walks = Atomic(0)

    init(_ store: InMemoryAuditStore, afterFirstHeads event: @escaping @Sendable () async -> Void) {
        self.store = store
        self.beforeWalk = { _ in }
        self.event = event
    }

    init(_ store: InMemoryAuditStore, beforeWalk: @escaping @Sendable (_ number: Int) async -> Void) {
        self.store = store
        self.beforeWalk = beforeWalk
        self.event = {}
    }

    func heads() async throws(GatewayError) -> [AuditHead] {
        let heads = try await self.store.heads()
        if !self.hasHappened.exchange(true, ordering: .relaxed) { await self.event() }
        return heads
    }

    func records(of writer: Int, after sequence: Int, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord] {
        try await self.store.records(of: writer, after: sequence, limit: limit)
    }

    func walk(_ walker: AuditWalker, limit: Int) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        await self.beforeWalk(self.walks.add(1, ordering: .relaxed).newValue)
        return try await self.store.walk(walker, limit: limit)
    }

    func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.store.writersWithRecords()
    }
}
