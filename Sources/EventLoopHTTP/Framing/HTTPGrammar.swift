/// The character classes of HTTP/1.1's grammar (RFC 9110, section 5.6.2; RFC 9112, sections 3 and 5).
enum HTTPGrammar {
    static let carriageReturn = UInt8(ascii: "\r")
    static let lineFeed = UInt8(ascii: "\n")
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")

    /// Bit n is set where the byte n, below 64, may stand in a token: `!#$%&'*+-.` and digits.
    private static let lowTokenBytes: UInt64 = 0x03FF_6CFA_0000_0000
    /// Bit n is set where the byte 64 + n may stand in a token: letters and `^_` and the backquote, `|` and `~`.
    private static let highTokenBytes: UInt64 = 0x57FF_FFFF_C7FF_FFFE

    /// Whether a byte may stand in a method or a field's name.
    static func isToken(_ byte: UInt8) -> Bool {
        let bits = byte < 64 ? Self.lowTokenBytes : byte < 128 ? Self.highTokenBytes : 0
        return bits >> UInt64(byte & 63) & 1 == 1
    }

    /// Whether a byte may stand in a field's value, in a reason phrase or in a chunk's extension.
    static func isText(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == Self.tab
    }

    /// Whether a byte may stand in a request target; the fragment's `#` may not.
    static func isTarget(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#")
    }

    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10
    }

    /// The byte with an ASCII capital turned into a small letter.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }
}

extension Span<UInt8> {
    /// Whether a part of the bytes is a lower-case text, ASCII letters without their case.
    func equalsIgnoringCase(_ range: Range<Int>, _ lowercased: [UInt8]) -> Bool {
        guard range.count == lowercased.count else { return false }
        for offset in 0..<lowercased.count
        where HTTPGrammar.lowercased(self[range.lowerBound + offset]) != lowercased[offset] {
            return false
        }
        return true
    }

    /// Whether a line ends at an index, by CR and LF and nothing else.
    func endsLine(at index: Int) -> Bool {
        index + 1 < self.count && self[index] == HTTPGrammar.carriageReturn && self[index + 1] == HTTPGrammar.lineFeed
    }
}
