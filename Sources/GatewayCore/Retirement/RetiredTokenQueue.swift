import Synchronization

/// Changes of the list on their way to its one writer, in their order.
final class RetiredTokenQueue: Sendable {
    private let capacity: Int
    private let drafts = Mutex<[RetiredTokenDraft]>([])
    private let wakeContinuation: AsyncStream<Void>.Continuation

    /// Tells that something waits; ends when the queue is closed.
    let wake: AsyncStream<Void>

    /// - Parameter capacity: how many changes may wait before reports are turned away.
    init(capacity: Int) {
        self.capacity = capacity
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Whether reports are taken; what follows from those that were taken always is.
    var hasRoom: Bool { self.drafts.withLock { $0.count < self.capacity } }

    /// How many changes wait.
    var count: Int { self.drafts.withLock { $0.count } }

    /// Adds changes.
    func append(_ new: [RetiredTokenDraft]) {
        guard !new.isEmpty else { return }
        let wasEmpty = self.drafts.withLock { drafts in
            defer { drafts += new }
            return drafts.isEmpty
        }
        if wasEmpty { self.wakeContinuation.yield() }
    }

    /// Takes the oldest changes.
    func take(atMost count: Int) -> [RetiredTokenDraft] {
        self.drafts.withLock { drafts in
            let taken = Array(drafts.prefix(count))
            drafts.removeFirst(taken.count)
            return taken
        }
    }

    /// Gives back changes that could not be written.
    func putBack(_ taken: [RetiredTokenDraft]) {
        self.drafts.withLock { $0.insert(contentsOf: taken, at: 0) }
    }

    /// Ends the stream of wakes.
    func close() { self.wakeContinuation.finish() }
}
