/// The character classes of HTTP/1.1's grammar (RFC 9110, section 5.6.2; RFC 9112, sections 3 and 5).
enum HTTPGrammar {
    static let carriageReturn = UInt8(ascii: "\r")
    static let lineFeed = UInt8(ascii: "\n")
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")

    /// Bit n is set if the byte n, below 64, may be part of a token: `!#$%&'*+-.` and digits.
    private static let lowTokenBytes: UInt64 = 0x03FF_6CFA_0000_0000
    /// Bit n is set if the byte 64 + n may be part of a token: letters and `^_` and the backquote, `|` and `~`.
    private static let highTokenBytes: UInt64 = 0x57FF_FFFF_C7FF_FFFE

    /// True for a byte of a method or a field's name.
    static func isToken(_ byte: UInt8) -> Bool {
        let bits = byte < 64 ? Self.lowTokenBytes : byte < 128 ? Self.highTokenBytes : 0
        return bits >> UInt64(byte & 63) & 1 == 1
    }

    static func isAllToken(_ bytes: Span<UInt8>) -> Bool {
        for index in bytes.indices where !Self.isToken(bytes[index]) { return false }
        return true
    }

    /// True for a byte of a field's value, a reason phrase or a chunk's extension.
    static func isText(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == Self.tab
    }

    /// True if all bytes from an index on are text.
    static func isAllText(_ bytes: Span<UInt8>, from start: Int = 0) -> Bool {
        Self.endOfText(in: bytes, from: start) == bytes.count
    }

    /// Returns the end of the text from an index on. It reads eight bytes at a time, because heads are mostly values.
    ///
    /// Not inlined: the optimiser removes all bounds checks of a word only if this function stands alone.
    @inline(never)
    static func endOfText(in bytes: Span<UInt8>, from start: Int) -> Int {
        let lastWord = bytes.count &- 8
        var index = start
        while index >= 0, index <= lastWord {
            let word = bytes.word(at: index)
            let delete = word ^ 0x7F7F_7F7F_7F7F_7F7F
            // The high bit marks a byte that is 0x7F, or is below 0x20. After the first such byte, others may be marked too.
            let controls = (word &- 0x2020_2020_2020_2020) & ~word
            let deletes = (delete &- 0x0101_0101_0101_0101) & ~delete
            let stops = (controls | deletes) & 0x8080_8080_8080_8080
            guard stops != 0 else {
                index &+= 8
                continue
            }
            index &+= stops.trailingZeroBitCount / 8
            guard index < bytes.count, bytes[index] == Self.tab else { return index }
            index &+= 1
        }
        while index >= 0, index < bytes.count, Self.isText(bytes[index]) { index &+= 1 }
        return index
    }

    /// Returns the index of the next line feed, or the end.
    @inline(never)  // As for `endOfText`.
    static func nextLineFeed(in bytes: Span<UInt8>, from start: Int) -> Int {
        let lastWord = bytes.count &- 8
        var index = start
        while index >= 0, index <= lastWord {
            let word = bytes.word(at: index) ^ 0x0A0A_0A0A_0A0A_0A0A
            let feeds = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
            guard feeds == 0 else { return index &+ feeds.trailingZeroBitCount / 8 }
            index &+= 8
        }
        while index >= 0, index < bytes.count, bytes[index] != Self.lineFeed { index &+= 1 }
        return index
    }

    /// True for a byte of a request target. The fragment's `#` is not allowed.
    static func isTarget(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#")
    }

    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10
    }

    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }
}

extension Span<UInt8> {
    /// Eight bytes from an index on, the first one lowest.
    @inline(__always)
    fileprivate func word(at index: Int) -> UInt64 {
        // Unsafe in name only: the position is checked, and any eight bytes are a number.
        unsafe UInt64(littleEndian: self.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
    }

    /// Compares a part of the bytes with a lower-case text. The case of ASCII letters is ignored.
    func equalsIgnoringCase(_ range: Range<Int>, _ lowercased: [UInt8]) -> Bool {
        guard range.count == lowercased.count else { return false }
        for offset in 0..<lowercased.count
        where HTTPGrammar.lowercased(self[range.lowerBound + offset]) != lowercased[offset] {
            return false
        }
        return true
    }

    /// True if a line ends at an index with CR LF.
    func endsLine(at index: Int) -> Bool {
        index + 1 < self.count && self[index] == HTTPGrammar.carriageReturn && self[index + 1] == HTTPGrammar.lineFeed
    }

    func elementsEqual(_ other: [UInt8]) -> Bool {
        guard self.count == other.count else { return false }
        for index in self.indices where self[index] != other[index] {
            return false
        }
        return true
    }
}

extension StringProtocol {
    /// Compares with another string byte by byte. The case of ASCII letters is ignored.
    func equalsIgnoringCase(_ other: some StringProtocol) -> Bool {
        guard self.utf8.count == other.utf8.count else { return false }
        return zip(self.utf8, other.utf8).allSatisfy { HTTPGrammar.lowercased($0) == HTTPGrammar.lowercased($1) }
    }
}

/// The value of `Content-Length` (RFC 9110, section 8.6).
enum HTTPContentLength: Equatable {
    case bytes(Int)
    /// Only digits, but more than any limit.
    case beyondAnyLimit
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

/// The syntax of `Host` (RFC 9112, section 3.2), as far as this server accepts it.
///
/// Narrower than the grammar. It accepts names of letters, digits, `-`, `.`, `_` and `~`, IPv4 addresses, and bracketed
/// IPv6 addresses. It refuses user information, percent encoding and an empty value.
enum HTTPAuthority {
    static func isValid(_ authority: Span<UInt8>) -> Bool {
        guard !authority.isEmpty else { return false }
        var index = 0
        if authority[0] == UInt8(ascii: "[") {
            index = 1
            while index < authority.count, Self.isIPv6Byte(authority[index]) { index += 1 }
            guard index >= 3, index < authority.count, authority[index] == UInt8(ascii: "]") else { return false }
            index += 1
        } else {
            while index < authority.count, Self.isNameByte(authority[index]) { index += 1 }
            guard index > 0 else { return false }
        }
        guard index < authority.count else { return true }
        let digits = index + 1..<authority.count
        guard authority[index] == UInt8(ascii: ":"), (1...5).contains(digits.count) else { return false }
        var port = 0
        for index in digits {
            guard HTTPGrammar.isDigit(authority[index]) else { return false }
            port = port * 10 + Int(authority[index] - UInt8(ascii: "0"))
        }
        return port <= 65535
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default:
            false
        }
    }

    private static func isIPv6Byte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default:
            false
        }
    }
}
