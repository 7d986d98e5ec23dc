/// Tells apart the bytes that matter inside and between strings, one at a time or eight at a time.
enum JSONByteClass {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080
    private static let quotes: UInt64 = 0x2222_2222_2222_2222
    private static let backslashes: UInt64 = 0x5C5C_5C5C_5C5C_5C5C
    private static let blanks: UInt64 = 0x2020_2020_2020_2020

    /// Finds the bytes of a word that end a run of plain string text: `"`, `\`, controls and everything beyond ASCII.
    ///
    /// - Parameter word: Eight bytes, the first one lowest.
    /// - Returns: 0 when there are none; else the lowest set bit lies in the first such byte (higher bits mean nothing,
    ///   because the subtractions borrow upwards from a hit).
    @inline(__always)
    static func stops(in word: UInt64) -> UInt64 {
        let quote = (word ^ Self.quotes) &- Self.ones
        let backslash = (word ^ Self.backslashes) &- Self.ones
        let control = word &- Self.blanks
        return (quote | backslash | control | word) & Self.highBits
    }

    /// Finds the backslashes of a word.
    ///
    /// - Parameter word: Eight bytes, the first one lowest.
    /// - Returns: 0 when there are none; else the lowest set bit lies in the first one.
    @inline(__always)
    static func backslashes(in word: UInt64) -> UInt64 {
        let difference = word ^ Self.backslashes
        return (difference &- Self.ones) & ~difference & Self.highBits
    }

    /// Whether a word may hold a byte that must be escaped when written: `"`, `\` or a control.
    ///
    /// - Parameter word: Eight bytes.
    /// - Returns: `false` only when no byte needs an escape.
    @inline(__always)
    static func needsEscape(in word: UInt64) -> Bool {
        let quote = word ^ Self.quotes
        let backslash = word ^ Self.backslashes
        let hits =
            ((quote &- Self.ones) & ~quote) | ((backslash &- Self.ones) & ~backslash)
            | ((word &- Self.blanks) & ~word)
        return hits & Self.highBits != 0
    }

    /// Whether a byte must be escaped when written.
    ///
    /// - Parameter byte: A byte of UTF-8 text.
    /// - Returns: Whether it is `"`, `\` or a control below U+0020.
    @inline(__always)
    static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// Whether a byte is a decimal digit.
    ///
    /// - Parameter byte: Any byte.
    /// - Returns: Whether it is `0` to `9`.
    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10
    }

    /// Passes over blanks (RFC 8259, section 2).
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - start: Where to begin.
    /// - Returns: The position of the first byte that is no blank, or the end of the text.
    @inline(__always)
    static func skipBlanks(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var position = start
        while position < bytes.count {
            let byte = bytes[position]
            // Blanks lie at the low end of ASCII: nearly always this first comparison decides.
            if byte > 0x20 { break }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { break }
            position = Self.skipRun(of: byte, bytes, from: position &+ 1)
        }
        return position
    }

    /// Passes over words of one byte, as indented texts have them.
    @inline(never)
    private static func skipRun(of byte: UInt8, _ bytes: Span<UInt8>, from start: Int) -> Int {
        let run = UInt64(byte) &* Self.ones
        let lastWord = bytes.count &- 8
        var position = start
        while position >= 0, position <= lastWord, bytes.word(at: position) == run { position &+= 8 }
        return position
    }
}
