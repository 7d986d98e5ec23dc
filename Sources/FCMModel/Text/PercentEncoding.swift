/// Text as one segment of a path or one value of a query (RFC 3986, 2.1).
package enum PercentEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Whether a text can be a segment: empty ones and those of dots alone lead elsewhere, however they are written.
    package static func isAddressable(_ text: String) -> Bool {
        text.utf8.count > 2 || text.utf8.contains { $0 != UInt8(ascii: ".") }
    }

    /// Escapes everything but unreserved characters (RFC 3986, 2.3), and one more where it is to stay as it is.
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
            guard let high = rest.next()?.hexValue, let low = rest.next()?.hexValue else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return String(validating: decoded, as: UTF8.self)
    }
}
