package import GatewayCore

/// Keys and answers that live as long as the test, in a store that can refuse.
package final class InMemoryIdempotencyStore: IdempotencyStore {
    private struct State {
        var records: [IdempotencyIdentity: StoredIdempotencyRecord] = [:]
        var lastID: Int64 = 0
        var mark: IdempotencyMark?
        var refuses = false
        var isHeldElsewhere = false
        var batches: [Int] = []
    }

    private let state = Observed(State())

    package init() {}

    package var records: [StoredIdempotencyRecord] { Array(self.state.current.records.values) }

    package var batches: [Int] { self.state.current.batches }

    package func refuse(_ refuses: Bool = true) { self.state.change { $0.refuses = refuses } }

    /// Has another replica hold all records from now on, or none of them.
    package func holdElsewhere(_ isHeld: Bool = true) { self.state.change { $0.isHeldElsewhere = isHeld } }

    /// Replaces what is stored of every record by other bytes, as damage would.
    package func damage() {
        self.state.change { state in
            for identity in state.records.keys {
                switch state.records[identity]?.record.state {
                case .open: state.records[identity]?.record.state = .open(progress: [1, 2, 3])
                case .finished: state.records[identity]?.record.state = .finished(answer: [1, 2, 3])
                case nil: break
                }
            }
        }
    }

    package func record(of identity: IdempotencyIdentity) async throws(GatewayError) -> StoredIdempotencyRecord? {
        let state = self.state.current
        guard !state.refuses else { throw Self.refusal }
        var stored = state.records[identity]
        if state.isHeldElsewhere { stored?.isHeldElsewhere = true }
        return stored
    }

    package func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        let outcomes = self.state.change { state -> [IdempotencyChange.Outcome]? in
            guard !state.refuses else { return nil }
            state.batches.append(changes.count)
            return changes.map { Self.apply($0, to: &state) }
        }
        guard let outcomes else { throw Self.refusal }
        return outcomes
    }

    package func mark() async throws(GatewayError) -> IdempotencyMark? {
        let state = self.state.current
        guard !state.refuses else { throw Self.refusal }
        return state.mark
    }

    package func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        let count = self.state.change { state -> Int? in
            guard !state.refuses else { return nil }
            state.mark = mark
            let expired = state.records.filter { $0.value.record.expiresAt <= mark.time }.keys.prefix(limit)
            for identity in expired { state.records[identity] = nil }
            return expired.count
        }
        guard let count else { throw Self.refusal }
        return count
    }

    private static func apply(_ change: IdempotencyChange, to state: inout State) -> IdempotencyChange.Outcome {
        switch change {
        case .reserve(let identity, let record):
            if let other = state.records[identity], other.record.expiresAt > record.createdAt { return .taken }
            state.lastID += 1
            state.records[identity] = StoredIdempotencyRecord(id: state.lastID, record: record)
            return .reserved(id: state.lastID, evicted: 0)
        case .update(let id, let new):
            if state.isHeldElsewhere { return .lost }
            for (identity, stored) in state.records where stored.id == id {
                state.records[identity]?.record.state = new
            }
            return .done
        case .renew:
            return state.isHeldElsewhere ? .lost : .done
        case .takeOver(let id, let progress):
            let stored = state.records.values.first { $0.id == id }
            return state.isHeldElsewhere || stored?.record.state != .open(progress: progress) ? .lost : .done
        case .release(let id):
            if state.isHeldElsewhere { return .lost }
            state.records = state.records.filter { $0.value.id != id }
            return .done
        }
    }

    private static var refusal: GatewayError { GatewayError(.storeUnavailable, "The store refuses, as it was told to") }
}
