/// The credential of `Authorization: Bearer …` (RFC 6750, 2.1).
enum BearerToken {
    private static let scheme = Array("bearer".utf8)

    /// The token in the bytes of the field's value; `nil` where there is none.
    ///
    /// The scheme's case does not matter.
    static func bytes(in value: [UInt8]) -> ArraySlice<UInt8>? {
        guard value.count > Self.scheme.count, value[Self.scheme.count] == UInt8(ascii: " ") else { return nil }
        for index in Self.scheme.indices where value[index] | 0x20 != Self.scheme[index] {
            return nil
        }
        var start = Self.scheme.count
        while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
        return start < value.count ? value[start...] : nil
    }
}
