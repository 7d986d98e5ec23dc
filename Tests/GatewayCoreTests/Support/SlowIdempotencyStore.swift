import GatewayCore
import GatewayTestKit

/// A store whose first transaction takes until a test lets it go.
struct SlowIdempotencyStore: IdempotencyStore {
    let store = InMemoryIdempotencyStore()
    private let isHeld = Observed(true)
    private let waiting = Observed(0)

    /// Lets it go once a transaction waits.
    func letGo(afterWaiting count: Int) async throws {
        try await self.waiting.wait { $0 >= count }
        self.isHeld.change { $0 = false }
    }

    func record(of identity: IdempotencyIdentity) async throws(GatewayError) -> StoredIdempotencyRecord? {
        try await self.store.record(of: identity)
    }

    func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        self.waiting.change { $0 += 1 }
        try? await self.isHeld.wait { !$0 }
        return try await self.store.apply(changes)
    }

    func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        try await self.store.purge(at: mark, limit: limit)
    }

    func mark() async throws(GatewayError) -> IdempotencyMark? {
        try await self.store.mark()
    }
}
