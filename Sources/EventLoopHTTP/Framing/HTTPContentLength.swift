/// The value of `Content-Length` (RFC 9110, section 8.6).
enum HTTPContentLength: Equatable {
    /// A length in bytes.
    case bytes(Int)
    /// Only digits, but more than any limit.
    case beyondAnyLimit
    /// Something other than digits.
    case malformed

    init(_ digits: Span<UInt8>) {
        guard !digits.isEmpty else {
            self = .malformed
            return
        }
        var length = 0
        var overflows = false
        for index in digits.indices {
            guard HTTPGrammar.isDigit(digits[index]) else {
                self = .malformed
                return
            }
            let (product, isTooLarge) = length.multipliedReportingOverflow(by: 10)
            let (sum, isTooLargeYet) = product.addingReportingOverflow(Int(digits[index] - UInt8(ascii: "0")))
            overflows = overflows || isTooLarge || isTooLargeYet
            length = sum
        }
        self = overflows ? .beyondAnyLimit : .bytes(length)
    }
}
