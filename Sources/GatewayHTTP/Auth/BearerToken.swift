import HTTPTypes

/// The credential of `Authorization: Bearer …` (RFC 6750, 2.1).
enum BearerToken {
    private static let scheme = "bearer"

    /// The token; `nil` where there is none.
    ///
    /// The scheme's case does not matter.
    static func text(in headers: HTTPFields) -> Substring? {
        guard let value = headers[.authorization] else { return nil }
        let bytes = value.utf8
        guard bytes.count > Self.scheme.utf8.count,
            zip(bytes, Self.scheme.utf8).allSatisfy({ $0 | 0x20 == $1 }),
            bytes[bytes.index(bytes.startIndex, offsetBy: Self.scheme.utf8.count)] == UInt8(ascii: " ")
        else { return nil }
        let token = bytes.dropFirst(Self.scheme.utf8.count).drop { $0 == UInt8(ascii: " ") }
        return token.isEmpty ? nil : Substring(token)
    }
}
