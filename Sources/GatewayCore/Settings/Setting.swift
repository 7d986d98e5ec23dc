import Synchronization

/// A setting that may change while the gateway runs; whoever needs it reads it anew each time.
package final class Setting<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    /// A setting that starts at a value.
    package init(_ value: Value) {
        self.value = Mutex(value)
    }

    /// What is in force now.
    package var current: Value {
        self.value.withLock { $0 }
    }

    /// Puts another value in force.
    package func change(to value: Value) {
        self.value.withLock { $0 = value }
    }
}
