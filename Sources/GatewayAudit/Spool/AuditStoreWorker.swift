import Synchronization

/// Runs one delivery to the store at a time in a task of its own, so that the audit's writer can stop waiting for a
/// slow one and spool meanwhile.
///
/// The writer alone uses it, and starts the next delivery when it has taken the last one's outcome.
final class AuditStoreWorker: Sendable {
    /// The result of handing records to the store.
    struct Delivery: Sendable {
        enum Result: Sendable {
            /// The store has everything up to this end.
            case stored(AuditChain)
            case refused(GatewayError)
            /// The spool holds something that the gateway did not write.
            case damaged
        }

        var result: Result
        var count: Int
        var duration: Duration
        /// Behind what was read of the spool, if it was.
        var cursor: AuditSpool.Cursor?
        /// The number of records behind the cursor still to be skipped (``AuditLog.WriterState/skipped``).
        var skipped = 0

        /// True if another record is in the place of one, so that the chain can't continue.
        var hasMetConflict: Bool {
            if case .refused(let error) = self.result { error.code == .conflict } else { false }
        }

        /// True if the store may have all of it.
        var leavesOutcomeUnknown: Bool {
            if case .refused(let error) = self.result { error.leavesOutcomeUnknown } else { false }
        }
    }

    typealias Job = @Sendable () async -> Delivery
    private typealias Timeout = (wait: Int, deadline: Uptime)

    private struct State {
        /// Given and not started.
        var job: Job?
        var isRunning = false
        var outcome: Delivery?
        /// The waiter for the end, and the number of its wait.
        var waiter: CheckedContinuation<Void, Never>?
        var waits = 0
        /// True if the wait may end before the job does.
        var canBeCutShort = false
        /// ``AuditStoreWorker/run()`` has ended, so that the caller has to run its jobs itself.
        var hasEnded = false

        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            defer { self.waiter = nil }
            return self.waiter
        }
    }

    private let state = Mutex(State())
    private let onEnd: @Sendable () -> Void
    private let jobs = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// The ends of waits; only the last wait still runs.
    private let timeouts = AsyncStream.makeStream(of: Timeout.self, bufferingPolicy: .bufferingNewest(1))

    /// A worker that starts nothing before ``run()``; it calls the closure after each job.
    init(onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = onEnd
    }

    var isBusy: Bool {
        self.state.withLock { $0.isRunning || $0.outcome != nil }
    }

    func start(_ job: @escaping Job) {
        self.state.withLock { state in
            precondition(!state.isRunning && state.outcome == nil, "A delivery is under way")
            (state.job, state.isRunning) = (job, true)
        }
        self.jobs.continuation.yield()
    }

    func takeOutcome() -> Delivery? {
        self.state.withLock { state in
            defer { state.outcome = nil }
            return state.outcome
        }
    }

    /// Waits for the end of the job under way and takes its outcome; `nil` when there is none yet.
    ///
    /// Without a timeout it waits for as long as it takes; with one, ``cutShort()`` may be allowed to end the wait as
    /// well.
    func outcome(within timeout: Duration?, canBeCutShort: Bool = true) async -> Delivery? {
        let deadline = timeout.map { Uptime.now + $0 }
        await withCheckedContinuation { continuation in
            let wait = self.state.withLock { state -> Int? in
                guard state.isRunning, !state.hasEnded else { return nil }
                state.waiter = continuation
                state.waits += 1
                state.canBeCutShort = deadline != nil && canBeCutShort
                return state.waits
            }
            guard let wait else { return continuation.resume() }
            if let deadline { self.timeouts.continuation.yield((wait, deadline)) }
        }
        if self.state.withLock({ $0.hasEnded }) { await self.runJob() }
        return self.takeOutcome()
    }

    /// Ends a wait that may be cut short, as if its time were up.
    func cutShort() {
        self.state.withLock { $0.canBeCutShort ? $0.takeWaiter() : nil }?.resume()
    }

    /// Runs jobs until its task is cancelled, and one that was given before then.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.endWaits() }
            for await _ in self.jobs.stream { await self.runJob() }
            await self.runJob()
            let waiter = self.state.withLock { state in
                state.hasEnded = true
                return state.takeWaiter()
            }
            waiter?.resume()
            group.cancelAll()
        }
    }

    private func runJob() async {
        let job = self.state.withLock { state in
            defer { state.job = nil }
            return state.job
        }
        guard let job else { return }
        let outcome = await job()
        let waiter = self.state.withLock { state in
            (state.outcome, state.isRunning) = (outcome, false)
            return state.takeWaiter()
        }
        waiter?.resume()
        self.onEnd()
    }

    private func endWaits() async {
        for await (wait, deadline) in self.timeouts.stream {
            guard self.state.withLock({ $0.waiter != nil && $0.waits == wait }) else { continue }
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            let waiter = self.state.withLock { $0.waits == wait ? $0.takeWaiter() : nil }
            waiter?.resume()
        }
    }
}
