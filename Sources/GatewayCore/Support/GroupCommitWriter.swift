import Synchronization

/// Commits changes in batches and in their order. Changes that arrive while a transaction runs, or within the flush
/// interval, share the next one.
///
/// If the store refuses a batch, changes that a caller waits for fail. The others stay at the front of the queue for the next
/// attempt. The audit has a writer of its own (decision 0042).
final class GroupCommitWriter<Change: Sendable, Outcome: Sendable>: Sendable {
    /// Makes changes durable in one transaction, and returns the outcome of each. If it throws, nothing was changed.
    typealias Transaction = @Sendable ([Change]) async throws(GatewayError) -> [Outcome]

    private typealias Answer = Result<Outcome, GatewayError>

    /// A class, because each copy of a generic structure looks up its type at run time.
    private final class Entry: Sendable {
        let change: Change
        let byteCount: Int
        let continuation: CheckedContinuation<Answer, Never>?

        init(_ change: Change, byteCount: Int, _ continuation: CheckedContinuation<Answer, Never>? = nil) {
            (self.change, self.byteCount, self.continuation) = (change, byteCount, continuation)
        }
    }

    private enum Phase {
        /// Next: `closing`, `ended`.
        case open
        /// The queue is committed once more. Next: `ended`.
        case closing
        case ended
    }

    private struct State {
        var phase = Phase.open
        var queue: [Entry] = []
        var byteCount = 0
        var isFlushing = false
        /// Callers of `flush` that wait for the one before them.
        var waiting: [CheckedContinuation<Void, Never>] = []

        mutating func take(atMost count: Int) -> [Entry] {
            let batch = Array(self.queue.prefix(count))
            self.queue.removeFirst(batch.count)
            self.byteCount -= batch.reduce(0) { $0 + $1.byteCount }
            return batch
        }

        mutating func putBack(_ batch: [Entry]) {
            self.queue.insert(contentsOf: batch, at: 0)
            self.byteCount += batch.reduce(0) { $0 + $1.byteCount }
        }
    }

    private let maxChanges: Int
    private let maxBytes: Int
    private let changesPerTransaction: Int
    private let flushInterval: Duration
    private let retryInterval: Duration
    private let byteCount: @Sendable (Change) -> Int
    private let transaction: Transaction
    private let state = Mutex(State())
    private let wake: AsyncStream<Void>
    private let wakeContinuation: AsyncStream<Void>.Continuation

    /// Makes a writer that commits nothing before ``run()``. ``hasRoom`` is false while `maxChanges` or `maxBytes` wait. A
    /// transaction has a bounded number of changes, so that other writers never wait long. A refused batch is retried after
    /// `retryInterval`.
    init(
        maxChanges: Int = .max,
        maxBytes: Int = .max,
        changesPerTransaction: Int,
        flushInterval: Duration = .zero,
        retryInterval: Duration = .seconds(1),
        byteCount: @escaping @Sendable (Change) -> Int = { _ in 0 },
        transaction: @escaping Transaction
    ) {
        self.maxChanges = maxChanges
        self.maxBytes = maxBytes
        self.changesPerTransaction = changesPerTransaction
        self.flushInterval = flushInterval
        self.retryInterval = retryInterval
        self.byteCount = byteCount
        self.transaction = transaction
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// True while fewer changes and bytes wait than allowed, for callers that can drop changes.
    var hasRoom: Bool {
        self.state.withLock { $0.queue.count < self.maxChanges && $0.byteCount < self.maxBytes }
    }

    /// Adds changes and returns at once, even without room.
    func add(_ changes: [Change]) {
        guard !changes.isEmpty else { return }
        _ = self.append(changes.map { Entry($0, byteCount: self.byteCount($0)) })
    }

    /// Makes a change and returns when it is durable, even if the caller's task is cancelled.
    ///
    /// Throws the store's error, after which the change may have been made nevertheless, or `storeUnavailable` if the writer
    /// has ended.
    func commit(_ change: Change) async throws(GatewayError) -> Outcome {
        let answer: Answer = await withCheckedContinuation { continuation in
            let entry = Entry(change, byteCount: self.byteCount(change), continuation)
            if !self.append(CollectionOfOne(entry)) { continuation.resume(returning: Self.ended) }
        }
        return try answer.get()
    }

    private func append(_ entries: some Collection<Entry>) -> Bool {
        let (isTaken, isFirst) = self.state.withLock { state in
            guard state.phase != .ended else { return (false, false) }
            defer {
                state.queue.append(contentsOf: entries)
                for entry in entries { state.byteCount += entry.byteCount }
            }
            return (true, state.queue.isEmpty)
        }
        if isFirst { self.wakeContinuation.yield() }
        return isTaken
    }

    /// Commits until ``close()`` or the task's cancellation, then commits the rest. Runs once. Returns the number of changes
    /// that were lost because the store refused them to the end.
    func run() async -> Int {
        for await _ in self.wake {
            if self.flushInterval > .zero { try? await Task.sleep(for: self.flushInterval) }
            while !(await self.flush()) {
                try? await Task.sleep(for: self.retryInterval)
                if Task.isCancelled || self.state.withLock({ $0.phase == .closing }) { break }
            }
        }
        await self.flush()
        let left = self.state.withLock { state in
            state.phase = .ended
            return state.take(atMost: .max)
        }
        for entry in left { entry.continuation?.resume(returning: Self.ended) }
        return left.count
    }

    func close() {
        self.state.withLock { state in
            if state.phase == .open { state.phase = .closing }
        }
        self.wakeContinuation.finish()
    }

    /// Commits the queue, after a batch that is under way. Returns `false` if the store refused and changes remain for the
    /// next attempt.
    @discardableResult
    func flush() async -> Bool {
        // One at a time, because of the order.
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isFirst = self.state.withLock { state in
                guard state.isFlushing else {
                    state.isFlushing = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFirst { continuation.resume() }
        }
        defer {
            let next = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
                if state.waiting.isEmpty {
                    state.isFlushing = false
                    return nil
                }
                return state.waiting.removeFirst()
            }
            next?.resume()
        }
        while true {
            let batch = self.state.withLock { $0.take(atMost: self.changesPerTransaction) }
            guard !batch.isEmpty else { return true }
            do throws(GatewayError) {
                let outcomes = try await self.transaction(batch.map(\.change))
                precondition(outcomes.count == batch.count, "\(outcomes.count) outcomes of \(batch.count) changes")
                for (entry, outcome) in zip(batch, outcomes) {
                    entry.continuation?.resume(returning: .success(outcome))
                }
            } catch {
                let kept = batch.filter { $0.continuation == nil }
                self.state.withLock { $0.putBack(kept) }
                for entry in batch { entry.continuation?.resume(returning: .failure(error)) }
                if !kept.isEmpty { return false }
            }
        }
    }

    private static var ended: Answer { .failure(GatewayError(.storeUnavailable, "The gateway is shutting down")) }
}
