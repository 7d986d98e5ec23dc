#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A moment of the machine's uptime, to measure durations and to keep deadlines.
///
/// It includes the time that the machine is suspended. A change of the wall clock does not move it.
///
/// It stands in for `ContinuousClock.Instant`, whose layout the compiler does not know: a structure that holds one is
/// laid out, copied and destroyed by calls to Swift's runtime.
package struct Uptime: InstantProtocol {
    /// Nanoseconds since the machine started.
    private let nanoseconds: Int64

    #if canImport(Darwin)
    private static let clock = CLOCK_MONOTONIC
    #else
    private static let clock = CLOCK_BOOTTIME
    #endif

    package static var now: Uptime {
        var time = timespec()
        // The call fills the structure and keeps no reference to it.
        unsafe clock_gettime(Self.clock, &time)
        return Uptime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The moment after a duration, without fractions of a nanosecond. It stops 292 years before and after the machine's
    /// start.
    package func advanced(by duration: Duration) -> Uptime {
        let (sum, overflows) = self.nanoseconds.addingReportingOverflow(duration.nanoseconds)
        guard overflows else { return Uptime(nanoseconds: sum) }
        return Uptime(nanoseconds: duration < .zero ? .min : .max)
    }

    package func duration(to other: Uptime) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(self.nanoseconds)
    }

    package static func - (lhs: Uptime, rhs: Uptime) -> Duration { rhs.duration(to: lhs) }
    package static func + (lhs: Uptime, rhs: Duration) -> Uptime { lhs.advanced(by: rhs) }
    package static func - (lhs: Uptime, rhs: Duration) -> Uptime { lhs.advanced(by: .zero - rhs) }
    package static func += (lhs: inout Uptime, rhs: Duration) { lhs = lhs + rhs }

    package static func < (lhs: Uptime, rhs: Uptime) -> Bool { lhs.nanoseconds < rhs.nanoseconds }
}

extension Task where Success == Never, Failure == Never {
    /// Sleeps until a moment of the machine's uptime, or until the task is cancelled.
    package static func sleep(until moment: Uptime, tolerance: Duration? = nil) async throws {
        try await Task.sleep(for: Uptime.now.duration(to: moment), tolerance: tolerance)
    }
}
