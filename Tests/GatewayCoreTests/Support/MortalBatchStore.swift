import FCMModel
import GatewayCore

/// The batches of a process that may die before or after each of the runner's calls.
struct MortalBatchStore: BatchStore {
    let store: any BatchStore
    let process: MortalProcess

    private func live<T: Sendable>(
        _ name: String,
        _ call: () async throws(GatewayError) -> T
    ) async throws(GatewayError) -> T {
        guard self.process.step("before \(name)") else { throw Self.dead }
        let result = try await call()
        guard self.process.step("after \(name)") else { throw Self.dead }
        return result
    }

    private static let dead = GatewayError(.storeUnavailable, "The process is dead")

    // MARK: For callers

    func apply(_ changes: [BatchWrite]) async throws(GatewayError) -> [BatchWrite.Outcome] {
        let name =
            switch changes.first {
            case .putBack: "put back"
            case .create, .record, nil: "record"
            }
        return try await self.live(name) { () throws(GatewayError) in try await self.store.apply(changes) }
    }

    func add(
        part number: Int,
        kind: Target.Kind,
        digest: [UInt8],
        chunks: [Batch.Chunk],
        to id: String,
        of tenant: TenantID
    ) async throws(GatewayError) {
        try await self.store.add(
            part: number,
            kind: kind,
            digest: digest,
            chunks: chunks,
            to: id,
            of: tenant
        )
    }

    func apply(_ change: BatchChange, to id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch? {
        try await self.live("change") { () throws(GatewayError) in
            try await self.store.apply(change, to: id, of: tenant)
        }
    }

    func batch(_ id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch? {
        try await self.store.batch(id, of: tenant)
    }

    func waitingUntil(_ id: String) async throws(GatewayError) -> Timestamp? { try await self.store.waitingUntil(id) }

    func batches(_ filter: BatchFilter, limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.store.batches(filter, limit: limit)
    }

    func results(
        of id: String,
        of tenant: TenantID,
        from chunk: Int,
        limit: Int
    ) async throws(GatewayError) -> [(chunk: Int, pending: [UInt8], results: [UInt8])] {
        try await self.store.results(of: id, of: tenant, from: chunk, limit: limit)
    }

    func delete(_ id: String, of tenant: TenantID) async throws(GatewayError) -> Bool {
        try await self.store.delete(id, of: tenant)
    }

    // MARK: For the runner

    func due() async throws(GatewayError) -> BatchesDue { try await self.store.due() }

    func claim(
        of tenant: TenantID,
        chunks limit: Int,
        slice: Int,
        recipients: Int
    ) async throws(GatewayError) -> [Batch.Slice] {
        try await self.live("claim") { () throws(GatewayError) in
            try await self.store.claim(of: tenant, chunks: limit, slice: slice, recipients: recipients)
        }
    }

    func paused(for reasons: Set<Batch.Reason>, limit: Int) async throws(GatewayError) -> [Batch] {
        try await self.store.paused(for: reasons, limit: limit)
    }

    func renew(_ claims: [Batch.Claim]) async throws(GatewayError) { try await self.store.renew(claims) }

    func returnAbandoned() async throws(GatewayError) -> Int {
        try await self.live("return") { () throws(GatewayError) in try await self.store.returnAbandoned() }
    }

    func takeFanOut(of tenant: TenantID, gap: Duration) async throws(GatewayError) -> Duration? {
        try await self.store.takeFanOut(of: tenant, gap: gap)
    }

    func add(_ pause: ProjectPause) async throws(GatewayError) {
        try await self.live("pause") { () throws(GatewayError) in try await self.store.add(pause) }
    }

    func summary() async throws(GatewayError) -> BatchSummary { try await self.store.summary() }

    func overdue(limit: Int) async throws(GatewayError) -> [Batch] { try await self.store.overdue(limit: limit) }

    func purge(limit: Int) async throws(GatewayError) -> Int { try await self.store.purge(limit: limit) }
}
