/// Text as one segment of a path or one value of a query (RFC 3986, 2.1).
package enum PathSegment {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Whether a text can be a segment: empty ones and those of dots alone lead elsewhere, however they are written.
    package static func isAddressable(_ text: String) -> Bool {
        text.utf8.count > 2 || text.utf8.contains { $0 != UInt8(ascii: ".") }
    }

    /// Escapes everything but letters, digits and `- . _ ~`.
    package static func encoded(_ text: String) -> String {
        guard !text.utf8.allSatisfy(Self.isUnreserved) else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 16)
        for byte in text.utf8 {
            if Self.isUnreserved(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 0xF)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Undoes escapes, once.
    ///
    /// - Parameter bytes: the bytes between two slashes, or of a query's value.
    /// - Returns: `nil` for a broken escape or bytes that are not UTF-8.
    package static func decoded(_ bytes: some Sequence<UInt8>) -> String? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.underestimatedCount)
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(Self.value), let low = rest.next().flatMap(Self.value) else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return String(validating: decoded, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// The value of a hexadecimal digit.
    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
