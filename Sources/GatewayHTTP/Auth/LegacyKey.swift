/// The credential of a legacy request: `Authorization: key=…`, or a bearer token as newer libraries send it.
enum LegacyKey {
    private static let prefix = Array("key=".utf8)

    /// The key in the bytes of the field's value; `nil` where there is none.
    ///
    /// The case of `key` does not matter, nor do blanks before the key.
    static func bytes(in value: [UInt8]) -> ArraySlice<UInt8>? {
        guard value.count > Self.prefix.count else { return nil }
        for index in Self.prefix.indices {
            let byte = value[index]
            let isUpperCase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            guard (isUpperCase ? byte | 0x20 : byte) == Self.prefix[index] else { return BearerToken.bytes(in: value) }
        }
        let key = value[Self.prefix.count...].drop { $0 == UInt8(ascii: " ") }
        return key.isEmpty ? nil : key
    }
}
