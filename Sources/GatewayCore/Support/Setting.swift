import Synchronization

/// A setting that may change while the gateway runs; its users read it anew each time.
package final class Setting<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    /// A setting that starts at a value.
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

/// A time limit that may change while the gateway runs; cheap enough to be read by every request.
package final class DurationSetting: Sendable {
    private let nanoseconds: Atomic<Int64>

    /// A limit that starts at a duration, which counts in whole nanoseconds.
    package init(_ duration: Duration) {
        self.nanoseconds = Atomic(Int64(duration / .nanoseconds(1)))
    }

    package var current: Duration {
        .nanoseconds(self.nanoseconds.load(ordering: .relaxed))
    }

    package func change(to duration: Duration) {
        self.nanoseconds.store(Int64(duration / .nanoseconds(1)), ordering: .relaxed)
    }
}
