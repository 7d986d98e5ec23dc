/// The syntax of `Host` (RFC 9112, section 3.2), as far as this server accepts it.
///
/// Narrower than the grammar: names of letters, digits, `-`, `.`, `_` and `~`, IPv4 addresses, and bracketed IPv6
/// addresses; no user information, no percent encoding, and an empty value is refused.
enum HTTPAuthority {
    static func isValid(_ authority: String) -> Bool {
        let bytes = authority.utf8
        var rest = bytes[...]
        guard let first = rest.first else { return false }
        if first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let address = rest[rest.index(after: rest.startIndex)..<end]
            guard address.count >= 2, address.allSatisfy({ Self.isIPv6Byte($0) }) else { return false }
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            let name = rest[..<end]
            guard !name.isEmpty, name.allSatisfy({ Self.isNameByte($0) }) else { return false }
            rest = rest[end...]
        }
        guard let colon = rest.popFirst() else { return true }
        guard colon == UInt8(ascii: ":"), (1...5).contains(rest.count) else { return false }
        var port = 0
        for byte in rest {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return false }
            port = port * 10 + Int(byte - UInt8(ascii: "0"))
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
