#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The machine's clock.
enum SystemTime {
    /// The time since the beginning of 1970 by `CLOCK_REALTIME`.
    static func sinceEpoch() -> Duration {
        var time = timespec()
        // The call fills the structure it is handed and keeps no reference to it.
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
