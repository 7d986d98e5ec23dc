/// A clock on which every sleep lasts until the test ends it.
final class HeldClock: Clock {
    typealias Instant = ContinuousClock.Instant

    private let start = ContinuousClock.now
    private let wake: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let asker: AsyncStream<Duration>.Continuation

    /// The sleeps asked for, as they begin.
    let sleeps: AsyncStream<Duration>

    init() {
        (self.wake, self.waker) = AsyncStream<Void>.makeStream()
        (self.sleeps, self.asker) = AsyncStream<Duration>.makeStream()
    }

    var now: Instant { self.start }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        self.asker.yield(self.start.duration(to: deadline))
        for await _ in self.wake {}
        try Task.checkCancellation()
    }

    /// Ends the sleep.
    func end() {
        self.waker.finish()
    }
}
