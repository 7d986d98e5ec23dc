package import GatewayCore
import Synchronization

/// Wraps an audit store and runs a test's closures at some of its calls.
package final class InterposedAuditStore: AuditStore {
    private let store: any AuditStore
    private let afterFirstHeads: @Sendable () async -> Void
    private let beforeRows: @Sendable (_ number: Int) async -> Void
    private let beforeRemoval: @Sendable () throws(GatewayError) -> Void
    private let hasLooked = Atomic(false)
    private let reads = Atomic(0)

    package init(
        _ store: any AuditStore,
        afterFirstHeads: @escaping @Sendable () async -> Void = {},
        beforeRows: @escaping @Sendable (_ number: Int) async -> Void = { _ in },
        beforeRemoval: @escaping @Sendable () throws(GatewayError) -> Void = {}
    ) {
        self.store = store
        self.afterFirstHeads = afterFirstHeads
        self.beforeRows = beforeRows
        self.beforeRemoval = beforeRemoval
    }

    package func heads() async throws(GatewayError) -> [AuditHead] {
        let heads = try await self.store.heads()
        if !self.hasLooked.exchange(true, ordering: .relaxed) { await self.afterFirstHeads() }
        return heads
    }

    package func rows(of writer: Int, from sequence: Int, limit: Int) async throws(GatewayError) -> AuditRows {
        await self.beforeRows(self.reads.add(1, ordering: .relaxed).newValue)
        return try await self.store.rows(of: writer, from: sequence, limit: limit)
    }

    package func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> AuditChain.Position? {
        try await self.store.unlisted(among: records)
    }

    package func remove(upTo truncation: AuditTruncation) async throws(GatewayError) {
        try self.beforeRemoval()
        try await self.store.remove(upTo: truncation)
    }

    package func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError) {
        try await self.store.append(records, head: head)
    }

    package func writersWithRecords() async throws(GatewayError) -> [Int] { try await self.store.writersWithRecords() }

    package func times(
        of writer: Int,
        in places: ClosedRange<Int>,
        every step: Int
    ) async throws(GatewayError) -> [AuditMoment] {
        try await self.store.times(of: writer, in: places, every: step)
    }

    package func signatures() async throws(GatewayError) -> AuditSignatures { try await self.store.signatures() }

    package func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.store.checkpoints(after: number, limit: limit)
    }

    package func truncations() async throws(GatewayError) -> [AuditTruncation] { try await self.store.truncations() }

    package func sinks() async throws(GatewayError) -> [String: Int] { try await self.store.sinks() }

    package func note(delivered number: Int, to sink: String) async throws(GatewayError) {
        try await self.store.note(delivered: number, to: sink)
    }

    package func append(_ checkpoint: SignedCheckpoint, end: CheckpointEnd) async throws(GatewayError) {
        try await self.store.append(checkpoint, end: end)
    }
}
