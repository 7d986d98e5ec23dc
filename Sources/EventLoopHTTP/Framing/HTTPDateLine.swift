import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The line `Date` of answers (RFC 9110, section 6.6.1). It is rewritten once the clock shows a new second.
struct HTTPDateLine {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// The time since the start of 1970.
    private let wallClock: @Sendable () -> Duration
    private var bytes: [UInt8] = []
    private var goodUntil = NIODeadline.distantPast

    init(wallClock: @escaping @Sendable () -> Duration) {
        self.wallClock = wallClock
    }

    /// The line with its line end. It reads the wall clock once a second, and so follows a change of the clock within a
    /// second.
    mutating func bytes(at now: NIODeadline) -> [UInt8] {
        if now >= self.goodUntil {
            self.renew(at: now)
        }
        return self.bytes
    }

    @inline(never)
    private mutating func renew(at now: NIODeadline) {
        let (seconds, attoseconds) = self.wallClock().components
        self.bytes = Array("Date: \(Self.text(unixSeconds: seconds))\r\n".utf8)
        self.goodUntil = now + .nanoseconds(1_000_000_000 - attoseconds / 1_000_000_000)
    }

    /// A time since 1970 as an HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(unixSeconds: Int64) -> String {
        let seconds = max(0, unixSeconds)
        let day = seconds / 86_400
        let second = seconds % 86_400
        // In years that begin in March, the leap day is the last day, and 400 years have 146,097 days.
        let sinceMarch0000 = day + 719_468
        let era = sinceMarch0000 / 146_097
        let dayOfEra = sinceMarch0000 % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthSinceMarch = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * monthSinceMarch + 2) / 5 + 1
        let month = (monthSinceMarch + 2) % 12
        let year = era * 400 + yearOfEra + (month < 2 ? 1 : 0)
        let date = "\(Self.padded(dayOfMonth)) \(Self.months[Int(month)]) \(Self.padded(year, to: 4))"
        let time = [second / 3_600, second / 60 % 60, second % 60].map { Self.padded($0) }.joined(separator: ":")
        return "\(Self.days[Int(day % 7)]), \(date) \(time) GMT"
    }

    private static func padded(_ number: Int64, to count: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }
}

enum SystemTime {
    /// The time since the start of 1970 by `CLOCK_REALTIME`.
    static func sinceEpoch() -> Duration {
        var time = timespec()
        // The call fills the structure and keeps no reference to it.
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
