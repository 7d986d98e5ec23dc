import FCMModel

extension Timestamp {
    /// The moment in RFC 3339 form, UTC, with milliseconds: `2026-03-01T12:00:00.000Z`.
    package var rfc3339: String {
        let secondsOfDay = self.seconds % 86_400
        let second = secondsOfDay < 0 ? secondsOfDay + 86_400 : secondsOfDay
        let date = CivilDate(daysSince1970: (self.seconds - second) / 86_400)
        let millisecond = Int(self.milliseconds - Int64(self.seconds) * 1_000)
        let day = "\(Self.text(date.year, 4))-\(Self.text(date.month, 2))-\(Self.text(date.day, 2))"
        let time = "\(Self.text(second / 3_600, 2)):\(Self.text(second / 60 % 60, 2)):\(Self.text(second % 60, 2))"
        return "\(day)T\(time).\(Self.text(millisecond, 3))Z"
    }

    /// Reads RFC 3339 text with or without a fraction of a second and with any offset; leap seconds are refused.
    package init?(rfc3339 text: String) {
        var reader = RFC3339Reader(text)
        guard let moment = reader.read() else { return nil }
        self = moment
    }

    private static func text(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
