import GatewayCore

/// Reads the field `Date` as servers write it (IMF-fixdate, RFC 9110, 5.6.7).
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The moment that `Sun, 06 Nov 1994 08:49:37 GMT` names; nil for another form.
    static func timestamp(_ text: String) -> Timestamp? {
        let pattern = /\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}:\d{2}:\d{2}) GMT/
        guard let match = text.wholeMatch(of: pattern),
            let month = Self.months.firstIndex(of: String(match.2)).map({ $0 + 1 })
        else { return nil }
        return Timestamp(rfc3339: "\(match.3)-\(month < 10 ? "0" : "")\(month)-\(match.1)T\(match.4)Z")
    }
}
