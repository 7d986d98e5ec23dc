import GatewaySupport

/// Reads the three forms of an HTTP date (RFC 9110, 5.6.7).
///
/// The weekday is ignored.
package enum HTTPDate {
    private static let months = [
        "Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6,
        "Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11, "Dec": 12,
    ]

    /// Returns the seconds since 1970. Returns `nil` for a text in none of the three forms.
    package static func seconds(_ text: String) -> Int? {
        let words = text.split(separator: " ").map(String.init)
        switch words.count {
        case 6 where words[5] == "GMT":
            // Sun, 06 Nov 1994 08:49:37 GMT
            return Self.seconds(year: words[3], month: words[2], day: words[1], time: words[4])
        case 5:
            // Sun Nov  6 08:49:37 1994
            return Self.seconds(year: words[4], month: words[1], day: words[2], time: words[3])
        case 4 where words[3] == "GMT":
            // Sunday, 06-Nov-94 08:49:37 GMT
            let date = words[1].split(separator: "-").map(String.init)
            guard date.count == 3, let year = Self.number(date[2], digits: 2...2) else { return nil }
            // Two digits below 70 are a year of this century.
            return Self.seconds(
                year: String(year < 70 ? 2000 + year : 1900 + year),
                month: date[1],
                day: date[0],
                time: words[2]
            )
        default:
            return nil
        }
    }

    private static func seconds(year: String, month: String, day: String, time: String) -> Int? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map { Self.number($0, digits: 2...2) }
        guard let year = Self.number(year, digits: 4...4), year >= 1970, let month = Self.months[month],
            let day = Self.number(day, digits: 1...2), let date = CivilDate(year: year, month: month, day: day),
            clock.count == 3, let hours = clock[0], let minutes = clock[1], let seconds = clock[2],
            (0...23).contains(hours), (0...59).contains(minutes), (0...60).contains(seconds)
        else { return nil }
        return date.daysSince1970 * 86_400 + hours * 3_600 + minutes * 60 + seconds
    }

    private static func number(_ text: some StringProtocol, digits: ClosedRange<Int>) -> Int? {
        digits.contains(text.utf8.count) ? Int(digits: text) : nil
    }
}

/// The delays that upstreams request, in a `Retry-After` header (RFC 9110, 10.2.3) or in a body.
package enum RetryAfter {
    /// One day, in seconds. A longer delay is reduced to one day.
    private static let longestSeconds = 86_400
    /// The delay in seconds after too many requests if the answer names no delay (V-RETRY, G-429).
    static let afterTooManyRequests = 60

    /// Returns the delay in seconds from a header's value. Returns `nil` unless the value is a number or an HTTP date.
    /// For a date, the delay is counted from `now`, in seconds since 1970.
    package static func seconds(_ text: String, now: Int) -> Int? {
        if text.isDigits {
            // A number with too many digits requests a long delay, not none.
            return Self.bounded(Int(text) ?? .max)
        }
        return HTTPDate.seconds(text).map { Self.bounded($0 - now) }
    }

    /// Limits a delay to the range from zero to one day. Callers sleep for the delay, and add it to times.
    static func bounded(_ seconds: Int) -> Int {
        min(max(0, seconds), Self.longestSeconds)
    }
}
