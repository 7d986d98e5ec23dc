import GatewayCore

/// The store of a process that may die before or after each call.
struct MortalIdempotencyStore: IdempotencyStore {
    let store: any IdempotencyStore
    let process: MortalProcess

    func records(of identities: [IdempotencyRecord.Identity]) async throws(GatewayError) -> [IdempotencyRecord.Found] {
        try self.live("read")
        return try await self.store.records(of: identities)
    }

    func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        let name = changes.map(Self.name).joined(separator: ", ")
        try self.live("before \(name)")
        let outcomes = try await self.store.apply(changes)
        try self.live("after \(name)")
        return outcomes
    }

    func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        0
    }

    func mark() async throws(GatewayError) -> IdempotencyMark? {
        nil
    }

    private func live(_ step: String) throws(GatewayError) {
        guard self.process.step(step) else { throw GatewayError(.storeUnavailable, "The process is dead") }
    }

    private static func name(_ change: IdempotencyChange) -> String {
        switch change {
        case .reserve: "reserve"
        case .update(_, .open, _): "mark"
        case .update(_, .finished, _): "finish"
        case .renew: "renew"
        case .takeOver: "take over"
        case .release: "release"
        }
    }
}
