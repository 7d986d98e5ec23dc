import ArgumentParser
import Foundation

/// A point in time as RFC 3339 writes it, such as `2026-01-31T12:00:00Z` or `2026-01-31T13:00:00+01:00`.
struct TimestampArgument: Sendable, Equatable, ExpressibleByArgument {
    /// The same point in time in UTC, as the API takes it.
    let utc: String

    /// Accepts RFC 3339 with whole seconds; a date without a time or zone is ambiguous and refused.
    init?(argument: String) {
        let pattern = /(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:Z|([+-])(\d{2}):(\d{2}))/.asciiOnlyDigits()
        guard let match = argument.wholeMatch(of: pattern),
            let year = Int(match.1), let month = Int(match.2), let day = Int(match.3),
            let hour = Int(match.4), let minute = Int(match.5), let second = Int(match.6),
            hour < 24, minute < 60, second < 60
        else { return nil }
        var offsetMinutes = 0
        if let sign = match.7, let hours = match.8.flatMap({ Int($0) }), let minutes = match.9.flatMap({ Int($0) }) {
            guard hours < 24, minutes < 60 else { return nil }
            offsetMinutes = (sign == "-" ? -1 : 1) * (hours * 60 + minutes)
        }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let components = DateComponents(
            year: year,
            month: month,
            day: day,
            hour: hour,
            minute: minute,
            second: second
        )
        // A calendar rolls 31 April over to 1 May; what comes back must be what went in.
        guard let local = calendar.date(from: components),
            calendar.dateComponents([.year, .month, .day], from: local)
                == DateComponents(year: year, month: month, day: day)
        else { return nil }
        self.utc = local.addingTimeInterval(Double(-offsetMinutes * 60)).formatted(.iso8601)
    }
}
