import Synchronization

/// A time limit that may change while the gateway runs; cheap enough to be read by every request.
package final class DurationSetting: Sendable {
    private let nanoseconds: Atomic<Int64>

    /// A limit that starts at a duration, which counts in whole nanoseconds.
    package init(_ duration: Duration) {
        self.nanoseconds = Atomic(Int64(duration / .nanoseconds(1)))
    }

    /// What is in force now.
    package var current: Duration {
        .nanoseconds(self.nanoseconds.load(ordering: .relaxed))
    }

    /// Puts another limit in force.
    package func change(to duration: Duration) {
        self.nanoseconds.store(Int64(duration / .nanoseconds(1)), ordering: .relaxed)
    }
}
