#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A moment of wall-clock time in whole microseconds since 1970, UTC.
package struct Timestamp: Sendable, Hashable, Comparable {
    package var microseconds: Int64

    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int { Int(self.microseconds.flooredQuotient(by: 1_000_000)) }

    /// Whole milliseconds since 1970, rounded down.
    package var milliseconds: Int64 { self.microseconds.flooredQuotient(by: 1_000) }

    /// The time after a duration, which counts as at most 292 years. Fractions of a microsecond are dropped.
    package func advanced(by duration: Duration) -> Timestamp {
        Timestamp(microseconds: self.microseconds + duration.microseconds)
    }

    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool { lhs.microseconds < rhs.microseconds }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = self.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

extension Duration {
    /// Whole nanoseconds; fractions are dropped. Beyond 292 years it is the largest number, or the smallest.
    ///
    /// ``components`` and the division of durations take several times as long, because they always divide 128 bits.
    package var nanoseconds: Int64 {
        let attoseconds = self.attoseconds
        // A nanosecond is 2⁹ · 5⁹ attoseconds. Without the 2⁹, more than an hour fits 64 bits.
        if let few = Int64(exactly: attoseconds >> 9), few >= 0 { return few / 1_953_125 }
        return Int64(clamping: attoseconds / 1_000_000_000)
    }

    /// Whole microseconds; fractions are dropped.
    package var microseconds: Int64 { self.nanoseconds / 1_000 }
}

extension Timestamp {
    /// The time in RFC 3339 form, UTC, with milliseconds: `2026-03-01T12:00:00.000Z`.
    package var rfc3339: String {
        let secondsOfDay = self.seconds % 86_400
        let second = secondsOfDay < 0 ? secondsOfDay + 86_400 : secondsOfDay
        let date = CivilDate(daysSince1970: (self.seconds - second) / 86_400)
        let millisecond = Int(self.milliseconds - Int64(self.seconds) * 1_000)
        let day = "\(Self.text(date.year, 4))-\(Self.text(date.month, 2))-\(Self.text(date.day, 2))"
        let time = "\(Self.text(second / 3_600, 2)):\(Self.text(second / 60 % 60, 2)):\(Self.text(second % 60, 2))"
        return "\(day)T\(time).\(Self.text(millisecond, 3))Z"
    }

    /// Reads RFC 3339 text, with or without a fraction of a second, and with any offset. Leap seconds are refused.
    package init?(rfc3339 text: String) {
        var reader = Reader(rest: text[...].utf8)
        guard let moment = reader.read() else { return nil }
        self = moment
    }

    private static func text(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    /// Reads a time in RFC 3339 form (section 5.6), with nothing before or after it.
    ///
    /// It refuses a leap second, because the seconds since 1970 don't count it.
    private struct Reader {
        var rest: Substring.UTF8View

        /// The time without fractions of a microsecond; `nil` for any other text.
        mutating func read() -> Timestamp? {
            guard let year = self.number(digits: 4), self.take("-"), let month = self.number(digits: 2), self.take("-"),
                let day = self.number(digits: 2), let date = CivilDate(year: year, month: month, day: day),
                self.take("T") || self.take("t"),
                let hour = self.number(digits: 2), hour < 24, self.take(":"),
                let minute = self.number(digits: 2), minute < 60, self.take(":"),
                let second = self.number(digits: 2), second < 60,
                let microsecond = self.fraction(), let offset = self.offset(), self.rest.isEmpty
            else { return nil }
            let seconds = ((date.daysSince1970 * 24 + hour) * 60 + minute - offset) * 60 + second
            return Timestamp(microseconds: Int64(seconds) * 1_000_000 + Int64(microsecond))
        }

        /// Microseconds; 0 without a fraction.
        private mutating func fraction() -> Int? {
            guard self.take(".") else { return 0 }
            guard let tenths = self.number(digits: 1) else { return nil }
            var (value, scale) = (tenths * 100_000, 100_000)
            while let digit = self.number(digits: 1) {
                scale /= 10
                value += digit * scale
            }
            return value
        }

        /// Minutes ahead of UTC.
        private mutating func offset() -> Int? {
            if self.take("Z") || self.take("z") { return 0 }
            let isAhead = self.take("+")
            guard isAhead || self.take("-"), let hours = self.number(digits: 2), hours < 24, self.take(":"),
                let minutes = self.number(digits: 2), minutes < 60
            else { return nil }
            return (hours * 60 + minutes) * (isAhead ? 1 : -1)
        }

        private mutating func number(digits: Int) -> Int? {
            var value = 0
            var rest = self.rest
            for _ in 0..<digits {
                guard let byte = rest.popFirst(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else {
                    return nil
                }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            self.rest = rest
            return value
        }

        private mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard self.rest.first == UInt8(ascii: character) else { return false }
            self.rest.removeFirst()
            return true
        }
    }
}

/// A day of the proleptic Gregorian calendar.
package struct CivilDate: Sendable, Hashable {
    /// The days from 1 March of the year 0, where the calculation below begins, to 1 January 1970.
    private static let daysTo1970 = 719_468
    /// The days of 400 years, after which the calendar repeats.
    private static let daysPerEra = 146_097

    package let year: Int
    package let month: Int
    package let day: Int

    package init(daysSince1970: Int) {
        // Years start in March, so that a leap day is the last of its year and moves no other day.
        let days = daysSince1970 + Self.daysTo1970
        let era = (days >= 0 ? days : days - Self.daysPerEra + 1) / Self.daysPerEra
        let dayOfEra = days - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        self.month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
    }

    package init?(year: Int, month: Int, day: Int) {
        guard (0...9_999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
        // A day beyond the month's end would be one of the next month.
        guard CivilDate(daysSince1970: self.daysSince1970) == self else { return nil }
    }

    package var daysSince1970: Int {
        let year = self.month <= 2 ? self.year - 1 : self.year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let monthFromMarch = self.month > 2 ? self.month - 3 : self.month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + self.day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * Self.daysPerEra + dayOfEra - Self.daysTo1970
    }
}

/// The source of wall-clock time for everything that runs.
package protocol WallClock: Sendable {
    func now() -> Timestamp
}

/// The machine's own clock.
package struct SystemWallClock: WallClock {
    package init() {}

    package func now() -> Timestamp {
        var time = timespec()
        // The call fills the structure and keeps no reference to it.
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
    }
}
