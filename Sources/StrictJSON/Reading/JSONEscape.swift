/// The escapes in strings (RFC 8259, section 7).
enum JSONEscape {
    /// Checks one escape; a surrogate pair counts as one.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - position: Its backslash.
    /// - Returns: The position after the escape.
    /// - Throws: `malformed` for unknown and broken escapes and for lone surrogates.
    static func end(of bytes: Span<UInt8>, escapeAt position: Int) throws(JSONFault) -> Int {
        guard position &+ 1 < bytes.count else {
            throw .malformed(at: position, "the text ends inside an escape")
        }
        let letter = bytes[position &+ 1]
        if letter != UInt8(ascii: "u") {
            guard Self.meaning(of: letter) != nil else {
                throw .malformed(at: position, "there is no such escape")
            }
            return position &+ 2
        }
        guard let unit = Self.unit(in: bytes, at: position &+ 2) else {
            throw .malformed(at: position, "four hexadecimal digits must follow \\u")
        }
        switch unit {
        case 0xD800..<0xDC00:
            guard Self.lowSurrogate(in: bytes, at: position &+ 6) != nil else {
                throw .malformed(at: position, "a high surrogate must be followed by a low one")
            }
            return position &+ 12
        case 0xDC00..<0xE000:
            throw .malformed(at: position, "a low surrogate must follow a high one")
        default:
            return position &+ 6
        }
    }

    /// The byte a two-character escape stands for.
    ///
    /// - Parameter letter: What follows the backslash.
    /// - Returns: The byte; nil when there is no such escape.
    static func meaning(of letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: nil
        }
    }

    /// The UTF-16 code unit written as four hexadecimal digits.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - position: The first digit.
    /// - Returns: The code unit; nil when there are no four digits.
    static func unit(in bytes: Span<UInt8>, at position: Int) -> UInt32? {
        guard position &+ 4 <= bytes.count else { return nil }
        var unit: UInt32 = 0
        for offset in 0..<4 {
            let byte = bytes[position &+ offset]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte &- UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte &- UInt8(ascii: "a") &+ 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte &- UInt8(ascii: "A") &+ 10
            default: return nil
            }
            unit = unit &<< 4 | UInt32(digit)
        }
        return unit
    }

    /// The low surrogate written as an escape.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - position: Where its backslash must stand.
    /// - Returns: The code unit; nil when something else stands there.
    static func lowSurrogate(in bytes: Span<UInt8>, at position: Int) -> UInt32? {
        guard position &+ 6 <= bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position &+ 1] == UInt8(ascii: "u"), let unit = Self.unit(in: bytes, at: position &+ 2),
            unit >= 0xDC00, unit < 0xE000
        else { return nil }
        return unit
    }
}
