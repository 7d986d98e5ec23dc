/// Reads the `Retry-After` header (RFC 9110, 10.2.3).
package enum RetryAfter {
    /// One day: whoever asks for more seconds is understood to ask for that.
    private static let longestSeconds = 86_400

    /// The delay in whole seconds that a header's value asks for.
    ///
    /// - Parameters:
    ///   - text: seconds, or an HTTP date.
    ///   - now: seconds since 1970, to which a date is compared.
    /// - Returns: `nil` for text that is neither; 0 for a date in the past.
    package static func seconds(_ text: String, now: Int) -> Int? {
        if !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // Digits beyond any number ask for a long wait, not for none.
            return min(Int(text) ?? .max, Self.longestSeconds)
        }
        return HTTPDate.seconds(text).map { max(0, $0 - now) }
    }
}
