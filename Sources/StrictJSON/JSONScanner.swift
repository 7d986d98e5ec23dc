/// Finds the ends of strings and numbers, and checks their syntax.
enum JSONScanner {
    /// Scans a string's contents.
    ///
    /// Returns the position of the closing quote, and true if there was an escape. Throws `malformed` for a missing
    /// end, control characters, invalid escapes, lone surrogates and bytes that are not UTF-8. Throws `tooManyMembers`
    /// beyond the budget.
    static func string(
        _ bytes: Span<UInt8>,
        from start: Int,
        budget: inout Int
    ) throws(JSONFault) -> (end: Int, hasEscapes: Bool) {
        var position = start
        var hasEscapes = false
        while true {
            position = Self.skipPlain(bytes, from: position)
            guard position < bytes.count else {
                throw .malformed(at: bytes.count, "the text ends inside a string")
            }
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                return (position, hasEscapes)
            } else if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                position = try JSONEscape.end(of: bytes, escapeAt: position)
                try Self.take(from: &budget, at: position)
            } else if byte >= 0x80 {
                guard let end = Self.end(of: bytes, sequenceAt: position) else {
                    throw .malformed(at: position, "the text is not UTF-8")
                }
                position = end
                try Self.take(from: &budget, at: position)
            } else if byte < 0x20 {
                throw .malformed(at: position, "a control character must be escaped")
            } else {
                position &+= 1
            }
        }
    }

    private static func take(from budget: inout Int, at position: Int) throws(JSONFault) {
        budget &-= 1
        guard budget >= 0 else {
            throw JSONFault(
                code: .tooManyMembers,
                offset: position,
                reason: "the document has too many characters that are escaped or beyond ASCII"
            )
        }
    }

    /// Skips plain characters, eight at a time. May stop early, near the end of the text.
    ///
    /// Not inlined, because the optimiser removes all bounds checks of the load only in a function of its own.
    @inline(never)
    private static func skipPlain(_ bytes: Span<UInt8>, from start: Int) -> Int {
        let lastWord = bytes.count &- 8
        var position = start
        while position >= 0, position <= lastWord {
            let stops = JSONByteClass.stops(in: bytes.word(at: position))
            if stops != 0 {
                return position &+ stops.trailingZeroBitCount / 8
            }
            position &+= 8
        }
        return position
    }

    /// Checks the UTF-8 sequence of two to four bytes at a position (RFC 3629, section 4): no overlong forms, no
    /// surrogates, nothing over U+10FFFF.
    ///
    /// Returns the position after the sequence; nil if it is not UTF-8.
    @inline(__always)
    private static func end(of bytes: Span<UInt8>, sequenceAt position: Int) -> Int? {
        let remaining = bytes.count &- position
        let lead = bytes[position]
        switch lead {
        case 0xC2...0xDF:
            guard remaining >= 2, Self.isContinuation(bytes[position &+ 1]) else { return nil }
            return position &+ 2
        case 0xE0...0xEF:
            guard remaining >= 3, Self.isContinuation(bytes[position &+ 2]) else { return nil }
            let lowest: UInt8 = lead == 0xE0 ? 0xA0 : 0x80
            let highest: UInt8 = lead == 0xED ? 0x9F : 0xBF
            let second = bytes[position &+ 1]
            guard second >= lowest, second <= highest else { return nil }
            return position &+ 3
        case 0xF0...0xF4:
            guard remaining >= 4, Self.isContinuation(bytes[position &+ 2]), Self.isContinuation(bytes[position &+ 3])
            else { return nil }
            let lowest: UInt8 = lead == 0xF0 ? 0x90 : 0x80
            let highest: UInt8 = lead == 0xF4 ? 0x8F : 0xBF
            let second = bytes[position &+ 1]
            guard second >= lowest, second <= highest else { return nil }
            return position &+ 4
        default:
            return nil
        }
    }

    @inline(__always)
    private static func isContinuation(_ byte: UInt8) -> Bool {
        byte & 0xC0 == 0x80
    }

    /// Scans a number (RFC 8259, section 6). Returns the position after it.
    static func number(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
        var position = start
        if position < bytes.count, bytes[position] == UInt8(ascii: "-") {
            position &+= 1
        }
        let leading = position
        position = try Self.skipDigits(bytes, from: position)
        if bytes[leading] == UInt8(ascii: "0"), position > leading &+ 1 {
            throw .malformed(at: leading &+ 1, "a number must not start with a zero and a digit")
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position = try Self.skipDigits(bytes, from: position &+ 1)
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position &+= 1
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
                position &+= 1
            }
            position = try Self.skipDigits(bytes, from: position)
        }
        return position
    }

    @inline(__always)
    private static func skipDigits(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
        var position = start
        while position < bytes.count, JSONByteClass.isDigit(bytes[position]) {
            position &+= 1
        }
        guard position > start else {
            throw .malformed(at: start, "a digit is expected here")
        }
        return position
    }
}

/// The escapes in strings (RFC 8259, section 7).
enum JSONEscape {
    /// Checks one escape; a surrogate pair counts as one. Returns the position after it.
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
            throw .malformed(at: position, "a low surrogate is allowed only after a high one")
        default:
            return position &+ 6
        }
    }

    /// The byte that a two-character escape represents.
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

    /// The UTF-16 code unit in four hexadecimal digits.
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

    /// The low surrogate in an escape.
    static func lowSurrogate(in bytes: Span<UInt8>, at position: Int) -> UInt32? {
        guard position &+ 6 <= bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position &+ 1] == UInt8(ascii: "u"), let unit = Self.unit(in: bytes, at: position &+ 2),
            unit >= 0xDC00, unit < 0xE000
        else { return nil }
        return unit
    }
}

/// Classifies the bytes inside and between strings, one or eight at a time.
enum JSONByteClass {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080
    private static let quotes: UInt64 = 0x2222_2222_2222_2222
    private static let backslashes: UInt64 = 0x5C5C_5C5C_5C5C_5C5C
    private static let deletes: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    private static let blanks: UInt64 = 0x2020_2020_2020_2020

    /// Finds the bytes of a word that end a run of plain string text: `"`, `\`, control characters and everything
    /// beyond ASCII.
    ///
    /// Returns 0 if there are none. Otherwise the lowest set bit is in the first such byte. Higher bits mean nothing,
    /// because the subtractions borrow upwards from a hit.
    @inline(__always)
    static func stops(in word: UInt64) -> UInt64 {
        let quote = (word ^ Self.quotes) &- Self.ones
        let backslash = (word ^ Self.backslashes) &- Self.ones
        let control = word &- Self.blanks
        return (quote | backslash | control | word) & Self.highBits
    }

    /// True if all bytes of a word are printable ASCII but neither a quote nor a backslash.
    @inline(__always)
    static func isPlain(_ word: UInt64) -> Bool {
        let delete = (word ^ Self.deletes) &- Self.ones
        return (Self.stops(in: word) | delete & Self.highBits) == 0
    }

    /// Finds the backslashes of a word.
    ///
    /// Returns 0 if there are none. Otherwise the lowest set bit is in the first one.
    @inline(__always)
    static func backslashes(in word: UInt64) -> UInt64 {
        let difference = word ^ Self.backslashes
        return (difference &- Self.ones) & ~difference & Self.highBits
    }

    /// True if a word may contain a byte that must be escaped when it is written: `"`, `\` or a control character.
    ///
    /// False only if no byte needs an escape.
    @inline(__always)
    static func needsEscape(in word: UInt64) -> Bool {
        let quote = word ^ Self.quotes
        let backslash = word ^ Self.backslashes
        let hits =
            ((quote &- Self.ones) & ~quote) | ((backslash &- Self.ones) & ~backslash)
            | ((word &- Self.blanks) & ~word)
        return hits & Self.highBits != 0
    }

    @inline(__always)
    static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10
    }

    /// Skips blanks (RFC 8259, section 2).
    @inline(__always)
    static func skipBlanks(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var position = start
        while position < bytes.count {
            let byte = bytes[position]
            // Blanks are at the low end of ASCII, so this first comparison nearly always decides.
            if byte > 0x20 { break }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { break }
            position = Self.skipRun(of: byte, bytes, from: position &+ 1)
        }
        return position
    }

    /// Skips words of one repeated byte, as in indented texts.
    @inline(never)
    private static func skipRun(of byte: UInt8, _ bytes: Span<UInt8>, from start: Int) -> Int {
        let run = UInt64(byte) &* Self.ones
        let lastWord = bytes.count &- 8
        var position = start
        while position >= 0, position <= lastWord, bytes.word(at: position) == run { position &+= 8 }
        return position
    }
}

extension Span where Element == UInt8 {
    /// True if all bytes are printable ASCII but neither a quote nor a backslash, so that they need no escape anywhere.
    package var isPlainText: Bool {
        let lastWord = self.count &- 8
        var position = 0
        while position >= 0, position <= lastWord {
            guard JSONByteClass.isPlain(self.word(at: position)) else { return false }
            position &+= 8
        }
        // The remaining bytes are the end of the last word, if there is one.
        if position < self.count, lastWord >= 0 { return JSONByteClass.isPlain(self.word(at: lastWord)) }
        while position < self.count {
            let byte = self[position]
            guard byte &- 0x20 < 0x5F, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { return false }
            position &+= 1
        }
        return true
    }

    /// Eight bytes as one word, the first byte lowest.
    @inline(__always)
    func word(at position: Int) -> UInt64 {
        // Unsafe in name only: the position is checked, and any eight bytes are a number.
        unsafe UInt64(littleEndian: self.bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
    }
}
