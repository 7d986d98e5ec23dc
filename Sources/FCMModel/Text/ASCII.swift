extension UInt8 {
    package var isDigit: Bool { UInt8(ascii: "0") <= self && self <= UInt8(ascii: "9") }

    package var isLetter: Bool { UInt8(ascii: "a") <= self | 0x20 && self | 0x20 <= UInt8(ascii: "z") }

    package var isLowerAlphanumeric: Bool {
        (UInt8(ascii: "a") <= self && self <= UInt8(ascii: "z")) || self.isDigit
    }

    /// Letters, digits and `- . _ ~` (RFC 3986, 2.3).
    package var isUnreserved: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: self.isLetter || self.isDigit
        }
    }

    /// A blank, or a control character that ends a line or page.
    var isBlank: Bool { self == UInt8(ascii: " ") || (0x09...0x0D).contains(self) }

    /// The value of a hexadecimal digit in upper or lower case. `nil` for any other byte.
    package var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension StringProtocol {
    /// True if the text is one or more ASCII digits.
    package var isDigits: Bool { !self.isEmpty && self.utf8.allSatisfy(\.isDigit) }
}

extension Int {
    /// The number in a text of ASCII digits. `nil` for any other text, and for a number that is too large.
    ///
    /// The standard library's initialiser also accepts a sign, which no field or parameter here has.
    package init?(digits text: some StringProtocol) {
        guard text.isDigits else { return nil }
        self.init(text)
    }

    /// The seconds of a duration such as `90s`, `15m`, `24h` or `7d`. `nil` for a bare number, which is ambiguous.
    package init?(secondsIn text: some StringProtocol) {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int(digits: text.dropLast()),
            case let (seconds, overflow) = number.multipliedReportingOverflow(by: unit), !overflow
        else { return nil }
        self = seconds
    }
}

extension String {
    /// The text itself if it can be a name or word of a protocol: ASCII, at most 64 bytes. `nil` for any other text.
    ///
    /// Swift compares, hashes and folds texts by the rules of Unicode. A long run of combining marks then takes as long
    /// as a thousand ordinary texts. Callers' texts are therefore checked by this property before they are looked up.
    package var protocolWord: String? {
        let bytes = self.utf8.span
        guard bytes.count <= 64 else { return nil }
        var all: UInt8 = 0
        for index in bytes.indices { all |= bytes[index] }
        return all < 0x80 ? self : nil
    }
}

/// Encodes and decodes a text as one segment of a path or one value of a query (RFC 3986, 2.1).
package enum PercentEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// True if a text can be a segment. An empty segment, `.` and `..` change the path, even if they are escaped.
    package static func isAddressable(_ text: String) -> Bool {
        text.utf8.count > 2 || text.utf8.contains { $0 != UInt8(ascii: ".") }
    }

    /// Escapes everything but unreserved characters (RFC 3986, 2.3) and `plain`.
    package static func encoded(_ text: String, keeping plain: UInt8? = nil) -> String {
        guard !text.utf8.allSatisfy(\.isUnreserved) else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 16)
        for byte in text.utf8 {
            if byte.isUnreserved || byte == plain {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 0xF)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Decodes the escapes of a segment or a value, once. Returns `nil` for a broken escape or invalid UTF-8.
    package static func decoded(_ bytes: some Sequence<UInt8>) -> String? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.underestimatedCount)
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.next()?.hexValue, let low = rest.next()?.hexValue else { return nil }
            decoded.append(high << 4 | low)
        }
        return String(validating: decoded, as: UTF8.self)
    }
}
