import Synchronization

/// Writes what is kept of keys: changes that come while a transaction runs share the next one.
final class IdempotencyJournal: Sendable {
    private typealias Answer = Result<IdempotencyChange.Outcome, GatewayError>

    private struct Waiting {
        let change: IdempotencyChange
        let continuation: CheckedContinuation<Answer, Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isClosed = false
    }

    /// The most changes of one transaction, so that other writers never wait long for their turn.
    private static let changesPerTransaction = 500

    private let store: any IdempotencyStore
    private let state = Mutex(State())
    private let wake: AsyncStream<Void>
    private let wakeContinuation: AsyncStream<Void>.Continuation

    init(store: any IdempotencyStore) {
        self.store = store
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Makes a change and returns when it is durable; whoever is cancelled waits all the same.
    ///
    /// Before ``run()`` has begun nothing is written.
    ///
    /// - Throws: `storeUnavailable`; after that the change may have been made, if the store lost its tongue only then.
    func commit(_ change: IdempotencyChange) async throws(GatewayError) -> IdempotencyChange.Outcome {
        let answer = await withCheckedContinuation { continuation in
            let isTaken = self.state.withLock { state in
                guard !state.isClosed else { return false }
                state.waiting.append(Waiting(change: change, continuation: continuation))
                return true
            }
            guard isTaken else { return continuation.resume(returning: Self.ended) }
            self.wakeContinuation.yield()
        }
        return try answer.get()
    }

    /// Writes until the journal is closed or the task is cancelled, then whatever still waits.
    func run() async {
        for await _ in self.wake { await self.flush() }
        await self.flush()
        let left = self.state.withLock { state in
            defer { (state.waiting, state.isClosed) = ([], true) }
            return state.waiting
        }
        for waiting in left { waiting.continuation.resume(returning: Self.ended) }
    }

    /// Lets ``run()`` return.
    func close() { self.wakeContinuation.finish() }

    private func flush() async {
        while true {
            let batch = self.state.withLock { state in
                let batch = Array(state.waiting.prefix(Self.changesPerTransaction))
                state.waiting.removeFirst(batch.count)
                return batch
            }
            guard !batch.isEmpty else { return }
            do throws(GatewayError) {
                let outcomes = try await self.store.apply(batch.map(\.change))
                for (waiting, outcome) in zip(batch, outcomes) {
                    waiting.continuation.resume(returning: .success(outcome))
                }
            } catch {
                for waiting in batch { waiting.continuation.resume(returning: .failure(error)) }
            }
        }
    }

    private static var ended: Answer {
        .failure(GatewayError(.storeUnavailable, "The gateway is shutting down"))
    }
}
