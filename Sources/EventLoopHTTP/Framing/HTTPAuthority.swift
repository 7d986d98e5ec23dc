/// The syntax of `Host` (RFC 9112, section 3.2), as far as this server accepts it.
///
/// Narrower than the grammar: names of letters, digits, `-`, `.`, `_` and `~`, IPv4 addresses, and bracketed IPv6
/// addresses; no user information, no percent encoding, and an empty value is refused.
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
