/// The delays that upstreams ask for, by the `Retry-After` header (RFC 9110, 10.2.3) or in a body.
package enum RetryAfter {
    /// One day: a server that asks for more is understood to ask for that.
    private static let longestSeconds = 86_400
    /// What a server that has had too many requests is left alone for where it names no delay (V-RETRY, G-429).
    static let afterTooManyRequests = 60

    /// The delay in whole seconds that a header's value asks for.
    ///
    /// - Parameters:
    ///   - text: seconds, or an HTTP date.
    ///   - now: seconds since 1970, to which a date is compared.
    /// - Returns: `nil` for text that is neither; 0 for a date in the past.
    package static func seconds(_ text: String, now: Int) -> Int? {
        if text.isDigits {
            // Digits beyond any number ask for a long wait, not for none.
            return Self.bounded(Int(text) ?? .max)
        }
        return HTTPDate.seconds(text).map { Self.bounded($0 - now) }
    }

    /// A delay within 0 and a day: callers sleep for it, and add it to the time.
    static func bounded(_ seconds: Int) -> Int {
        min(max(0, seconds), Self.longestSeconds)
    }
}
