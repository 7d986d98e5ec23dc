package import GatewayCore
import GatewayStorage

/// Idempotency records in SQLite; a test can let another replica hold them.
package final class TestIdempotencyStore: IdempotencyStore {
    private struct State {
        var identities: Set<IdempotencyRecord.Identity> = []
        var isHeldElsewhere = false
        var batches: [[IdempotencyChange]] = []
    }

    package let database: TestDatabase
    private let store: SQLIdempotencyStore
    private let state = Observed(State())

    /// The owner is the one of slices whose keys the store reserves.
    package init(in database: TestDatabase = .sample(), owner: ReplicaID = ReplicaID(text: "")) {
        self.database = database
        self.store = SQLIdempotencyStore(database: database, owner: owner)
    }

    /// The records of all keys that were reserved and not released, in no particular order.
    package func records() async throws(GatewayError) -> [IdempotencyRecord.Stored] {
        var records: [IdempotencyRecord.Stored] = []
        for identity in self.state.current.identities {
            if let record = try await self.store.record(of: identity) { records.append(record) }
        }
        return records
    }

    /// The changes of each transaction.
    package var batches: [[IdempotencyChange]] { self.state.current.batches }

    package func refuse(_ refuses: Bool = true) { self.database.refuse(refuses) }

    /// Lets another replica hold all records from now on, or none of them.
    package func holdElsewhere(_ isHeld: Bool = true) { self.state.change { $0.isHeldElsewhere = isHeld } }

    package func records(of identities: [IdempotencyRecord.Identity]) async throws(GatewayError) -> [IdempotencyRecord
        .Found]
    {
        let found = try await self.store.records(of: identities)
        guard self.state.current.isHeldElsewhere else { return found }
        return found.map { found in
            found.map { stored in
                var stored = stored
                stored?.isHeldElsewhere = true
                return stored
            }
        }
    }

    package func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        guard !self.state.current.isHeldElsewhere else { return changes.map { _ in .lost } }
        let outcomes = try await self.store.apply(changes)
        self.state.change { state in
            state.batches.append(changes)
            for case .reserve(let identity, _) in changes { state.identities.insert(identity) }
        }
        return outcomes
    }

    package func mark() async throws(GatewayError) -> IdempotencyMark? { try await self.store.mark() }

    package func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        try await self.store.purge(at: mark, limit: limit)
    }
}
