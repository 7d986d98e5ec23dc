import FCMModel
import Synchronization

/// The calls of one change of many devices' subscriptions.
final class TopicFanOut: Sendable {
    private let calls: FanOut<TopicReading>
    /// Whether the API is known to be there.
    private let isServed = Mutex(false)

    init(count: Int) {
        self.calls = FanOut(count: count, notStarted: .notStarted)
    }

    /// Takes the next call; `nil` when none is left or is worth making.
    func next() -> Int? { self.calls.next() }

    /// Notes what a call came to.
    func finish(_ index: Int, _ reading: TopicReading) {
        self.calls.finish(index, reading, holdsForAll: self.holdsForAll(reading))
    }

    /// What the calls came to, in their order; those that were not made share the verdict.
    func readings() -> [TopicReading] { self.calls.readings() }

    private func holdsForAll(_ reading: TopicReading) -> Bool {
        switch reading.signal {
        case .none:
            if case .changed = reading.answer { self.isServed.withLock { $0 = true } }
            return false
        case .apiMissing:
            // Once another device was served, this is about the one device.
            return !self.isServed.withLock(\.self)
        case .tokenRefused, .holdsForAll:
            return true
        }
    }
}
