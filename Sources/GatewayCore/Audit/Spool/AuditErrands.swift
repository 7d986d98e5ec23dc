import Synchronization

/// Does one thing after the other in a task of its own, so that whoever wants it done need not wait for a slow one.
///
/// One caller uses it, which gives the next errand when the last one's outcome has been taken.
final class AuditErrands<Outcome: Sendable>: Sendable {
    /// What is to be done.
    typealias Work = @Sendable () async -> Outcome

    private struct State {
        /// Given and not begun.
        var work: Work?
        var isUnderWay = false
        var outcome: Outcome?
        /// Who waits for the end, and the number of its wait.
        var waiter: CheckedContinuation<Void, Never>?
        var waits = 0
        /// Whether the wait may end before the errand does.
        var mayLeave = false
        /// Nobody does errands any more, so that the caller has to.
        var isOver = false

        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            defer { self.waiter = nil }
            return self.waiter
        }
    }

    private let state = Mutex(State())
    private let onEnd: @Sendable () -> Void
    private let work: AsyncStream<Void>
    private let workContinuation: AsyncStream<Void>.Continuation
    private let patience: AsyncStream<(wait: Int, deadline: ContinuousClock.Instant)>
    private let patienceContinuation: AsyncStream<(wait: Int, deadline: ContinuousClock.Instant)>.Continuation

    /// Errands, done while ``run()`` runs.
    ///
    /// - Parameter onEnd: called after each of them.
    init(onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = onEnd
        (self.work, self.workContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        // Only the last wait goes on.
        (self.patience, self.patienceContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Whether an errand was given whose outcome was not taken yet.
    var isBusy: Bool {
        self.state.withLock { $0.isUnderWay || $0.outcome != nil }
    }

    /// Gives an errand.
    func begin(_ work: @escaping Work) {
        self.state.withLock { state in
            precondition(!state.isUnderWay && state.outcome == nil, "An errand is under way")
            (state.work, state.isUnderWay) = (work, true)
        }
        self.workContinuation.yield()
    }

    /// The outcome of an errand that has ended, once.
    func take() -> Outcome? {
        self.state.withLock { state in
            defer { state.outcome = nil }
            return state.outcome
        }
    }

    /// Waits for the end of the errand under way.
    ///
    /// - Parameters:
    ///   - patience: for how long at most; `nil` for as long as it takes.
    ///   - mayHurry: whether ``hurry()`` ends the wait as well.
    /// - Returns: its outcome; `nil` when there is none yet.
    func outcome(within patience: Duration?, mayHurry: Bool = true) async -> Outcome? {
        let deadline = patience.map { ContinuousClock.now + $0 }
        await withCheckedContinuation { continuation in
            let wait = self.state.withLock { state -> Int? in
                guard state.isUnderWay, !state.isOver else { return nil }
                state.waiter = continuation
                state.waits += 1
                state.mayLeave = deadline != nil && mayHurry
                return state.waits
            }
            guard let wait else { return continuation.resume() }
            if let deadline { self.patienceContinuation.yield((wait, deadline)) }
        }
        if self.state.withLock({ $0.isOver }) { await self.perform() }
        return self.take()
    }

    /// Ends a wait for an outcome that need not be waited for, as if its time were up.
    func hurry() {
        self.state.withLock { $0.mayLeave ? $0.takeWaiter() : nil }?.resume()
    }

    /// Does errands until its task is cancelled, and what was given before then.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.watch() }
            for await _ in self.work { await self.perform() }
            await self.perform()
            let waiter = self.state.withLock { state in
                state.isOver = true
                return state.takeWaiter()
            }
            waiter?.resume()
            group.cancelAll()
        }
    }

    private func perform() async {
        let work = self.state.withLock { state in
            defer { state.work = nil }
            return state.work
        }
        guard let work else { return }
        let outcome = await work()
        let waiter = self.state.withLock { state in
            (state.outcome, state.isUnderWay) = (outcome, false)
            return state.takeWaiter()
        }
        waiter?.resume()
        self.onEnd()
    }

    /// Ends waits whose time is up.
    private func watch() async {
        for await (wait, deadline) in self.patience {
            guard self.state.withLock({ $0.waiter != nil && $0.waits == wait }) else { continue }
            guard (try? await Task.sleep(until: deadline, clock: .continuous)) != nil else { return }
            let waiter = self.state.withLock { $0.waits == wait ? $0.takeWaiter() : nil }
            waiter?.resume()
        }
    }
}
