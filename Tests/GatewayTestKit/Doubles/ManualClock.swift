package import GatewayCore
import Synchronization

/// A wall clock that stands still until a test moves it.
package final class ManualClock: WallClock {
    private let time: Mutex<Timestamp>

    package init(at time: Timestamp = .sample) {
        self.time = Mutex(time)
    }

    package func now() -> Timestamp { self.time.withLock { $0 } }

    /// Moves the clock; a negative duration moves it backwards.
    package func advance(by duration: Duration) { self.time.withLock { $0 = $0.advanced(by: duration) } }
}
