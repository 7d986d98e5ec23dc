import FCMModel

/// Reads a moment in RFC 3339 form (section 5.6), and nothing before or after it.
///
/// A leap second, which no count of seconds since 1970 has room for, is refused.
struct RFC3339Reader {
    private var rest: Substring.UTF8View

    init(_ text: String) {
        self.rest = text[...].utf8
    }

    /// The moment, fractions of a microsecond dropped; `nil` for any other text.
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

    /// Microseconds; 0 where no fraction stands.
    private mutating func fraction() -> Int? {
        guard self.take(".") else { return 0 }
        guard var value = self.number(digits: 1) else { return nil }
        var scale = 100_000
        value *= scale
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
            guard let byte = rest.popFirst(), byte.isDigit else { return nil }
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
