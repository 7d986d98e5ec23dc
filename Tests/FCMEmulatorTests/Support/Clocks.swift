import Foundation
import Synchronization

/// A clock whose sleeps end one by one when the test calls `step`.
final class StepClock: Clock {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var sleepers: [(id: Int, waker: AsyncStream<Void>.Continuation)] = []
        var lastID = 0
    }

    private let start = ContinuousClock.now
    private let state = Mutex(State())
    private let asker: AsyncStream<Duration>.Continuation

    /// The requested durations, as the sleeps begin.
    let sleeps: AsyncStream<Duration>

    init() {
        (self.sleeps, self.asker) = AsyncStream<Duration>.makeStream()
    }

    var now: Instant { self.start }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let (wake, waker) = AsyncStream<Void>.makeStream()
        let id = self.state.withLock { state in
            state.lastID += 1
            state.sleepers.append((state.lastID, waker))
            return state.lastID
        }
        self.asker.yield(self.start.duration(to: deadline))
        for await _ in wake {}
        self.state.withLock { $0.sleepers.removeAll { $0.id == id } }
        try Task.checkCancellation()
    }

    /// Ends the sleep that began first.
    func step() {
        let waker = self.state.withLock { $0.sleepers.isEmpty ? nil : $0.sleepers.removeFirst().waker }
        waker?.finish()
    }
}

/// A time that the test sets.
final class ManualTime: Sendable {
    private let date: Mutex<Date>

    init(_ secondsSince1970: TimeInterval = 1_700_000_000) {
        self.date = Mutex(Date(timeIntervalSince1970: secondsSince1970))
    }

    var now: Date { self.date.withLock { $0 } }

    func advance(seconds: TimeInterval) {
        self.date.withLock { $0 = $0.addingTimeInterval(seconds) }
    }
}
