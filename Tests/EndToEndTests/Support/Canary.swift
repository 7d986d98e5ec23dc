import Foundation

/// A text that must not appear anywhere, in any encoding.
struct Canary: Sendable {
    let name: String
    let forms: [Data]

    init(_ name: String, _ text: String) {
        self.name = name
        let bytes = Array(text.utf8)
        let texts =
            [text] + Self.base64(bytes) + Self.percentEncoded(bytes) + Self.jsonEscaped(text)
            + [Self.hex(bytes), Self.spacedHex(bytes)]
        self.forms = Set(texts).map { Data($0.utf8) }
    }

    /// A canary of binary data.
    init(_ name: String, bytes: [UInt8]) {
        self.name = name
        self.forms =
            [Data(bytes), Data(Self.hex(bytes).utf8), Data(Self.spacedHex(bytes).utf8)]
            + Self.base64(bytes).map { Data($0.utf8) }
    }

    func isIn(_ bytes: Data) -> Bool {
        self.forms.contains { bytes.range(of: $0) != nil }
    }

    /// In a longer text, bytes start at one of three offsets in a Base64 group. Digits that also hold bits of
    /// neighbouring bytes are left out.
    private static func base64(_ bytes: [UInt8]) -> [String] {
        (0...2)
            .flatMap { shift in
                let encoded = Data(Array(repeating: 0, count: shift) + bytes).base64EncodedString()
                let own = String(encoded.prefix((shift + bytes.count) * 8 / 6).dropFirst((shift * 8 + 5) / 6))
                let urlSafe = own.replacing("+", with: "-").replacing("/", with: "_")
                return [own, urlSafe]
            }
    }

    private static func percentEncoded(_ bytes: [UInt8]) -> [String] {
        ["%02X", "%02x"]
            .flatMap { format in
                let all = bytes.map { "%" + String(format: format, $0) }
                let needed = zip(bytes, all).map { Self.isUnreserved($0) ? String(UnicodeScalar($0)) : $1 }
                return [all.joined(), needed.joined()]
            }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        let scalar = UnicodeScalar(byte)
        return scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
            || "-._~".unicodeScalars.contains(scalar)
    }

    private static func jsonEscaped(_ text: String) -> [String] {
        let quoted = text.replacing(#"\"#, with: #"\\"#).replacing(#"""#, with: #"\""#)
        let units = text.utf16.map { String(format: #"\u%04x"#, $0) }
        let ascii = zip(quoted.utf16, quoted.utf16.map { String(format: #"\u%04x"#, $0) })
            .map { $0 < 0x80 ? String(UnicodeScalar(UInt8($0))) : $1 }
            .joined()
        return [
            quoted, quoted.replacing("/", with: #"\/"#), ascii, ascii.replacing("/", with: #"\/"#),
            units.joined(), units.map { $0.uppercased().replacing("U", with: "u") }.joined(),
        ]
    }

    /// The form of memory dumps, which show sixteen bytes a line; the first eight are enough.
    private static func spacedHex(_ bytes: [UInt8]) -> String {
        bytes.prefix(8).map { String(format: "%02x", $0) }.joined(separator: " ")
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }
}

extension CharacterSet {
    /// The characters that URLs never escape (RFC 3986, section 2.3).
    static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    )
}
