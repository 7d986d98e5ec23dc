#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Timestamp {
    private static let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// The moment in RFC 3339 form, UTC, with milliseconds: `2026-03-01T12:00:00.000Z`.
    package var rfc3339: String {
        Date(timeIntervalSince1970: Double(self.milliseconds) / 1_000).formatted(Self.format)
    }

    /// Reads RFC 3339 text with or without a fraction of a second and with any offset.
    package init?(rfc3339 text: String) {
        let date =
            (try? Date(text, strategy: Self.format))
            ?? (try? Date(text, strategy: Date.ISO8601FormatStyle()))
        guard let date else { return nil }
        self.init(microseconds: Int64((date.timeIntervalSince1970 * 1_000).rounded()) * 1_000)
    }
}
