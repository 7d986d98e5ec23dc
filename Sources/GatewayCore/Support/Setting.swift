import Synchronization

/// A setting that may change while the gateway runs. Readers fetch it each time.
package final class Setting<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    package init(_ value: Value) {
        self.value = Mutex(value)
    }

    package var current: Value {
        self.value.withLock { $0 }
    }

    package func change(to value: Value) {
        self.value.withLock { $0 = value }
    }
}

/// A time limit that may change while the gateway runs, cheap enough for every request to read.
package final class DurationSetting: Sendable {
    private let nanoseconds: Atomic<Int64>

    /// Takes a duration, in whole nanoseconds.
    package init(_ duration: Duration) {
        self.nanoseconds = Atomic(duration.nanoseconds)
    }

    package var current: Duration {
        .nanoseconds(self.nanoseconds.load(ordering: .relaxed))
    }

    package func change(to duration: Duration) {
        self.nanoseconds.store(duration.nanoseconds, ordering: .relaxed)
    }
}
