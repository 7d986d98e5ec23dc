#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Tells wall-clock time; the one source of it for everything that runs.
package protocol WallClock: Sendable {
    /// The present moment.
    func now() -> Timestamp
}

/// The machine's own clock.
package struct SystemWallClock: WallClock {
    /// The machine's clock.
    package init() {}

    /// The present moment by `CLOCK_REALTIME`.
    package func now() -> Timestamp {
        var time = timespec()
        // The call fills the structure it is handed and keeps no reference to it.
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
    }
}
