import Synchronization

/// Changes of the list on their way to its one writer, in their order.
final class RetiredTokenQueue: Sendable {
    private struct State {
        var drafts: [RetiredTokenDraft] = []
        /// What the drafts' texts take.
        var byteCount = 0
    }

    private let capacity: Int
    private let maxBytes: Int
    private let state = Mutex(State())
    private let wakeContinuation: AsyncStream<Void>.Continuation

    /// Tells that something waits; ends when the queue is closed.
    let wake: AsyncStream<Void>

    /// - Parameters:
    ///   - capacity: how many changes may wait before reports are turned away.
    ///   - maxBytes: how many bytes of tokens may wait before reports are turned away.
    init(capacity: Int, maxBytes: Int) {
        self.capacity = capacity
        self.maxBytes = maxBytes
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Whether reports are taken; what follows from those that were taken always is.
    var hasRoom: Bool {
        self.state.withLock { $0.drafts.count < self.capacity && $0.byteCount < self.maxBytes }
    }

    /// How many changes wait.
    var count: Int { self.state.withLock { $0.drafts.count } }

    /// Adds changes.
    func append(_ new: [RetiredTokenDraft]) {
        guard !new.isEmpty else { return }
        let wasEmpty = self.state.withLock { state in
            defer {
                state.drafts += new
                state.byteCount += new.byteCount
            }
            return state.drafts.isEmpty
        }
        if wasEmpty { self.wakeContinuation.yield() }
    }

    /// Takes the oldest changes.
    func take(atMost count: Int) -> [RetiredTokenDraft] {
        self.state.withLock { state in
            let taken = Array(state.drafts.prefix(count))
            state.drafts.removeFirst(taken.count)
            state.byteCount -= taken.byteCount
            return taken
        }
    }

    /// Gives back changes that could not be written.
    func putBack(_ taken: [RetiredTokenDraft]) {
        self.state.withLock { state in
            state.drafts.insert(contentsOf: taken, at: 0)
            state.byteCount += taken.byteCount
        }
    }

    /// Ends the stream of wakes.
    func close() { self.wakeContinuation.finish() }
}

extension [RetiredTokenDraft] {
    /// What the drafts' texts take.
    fileprivate var byteCount: Int { self.reduce(0) { $0 + $1.byteCount } }
}
