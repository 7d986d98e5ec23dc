import FCMModel

/// The name of a device group in a path.
enum DeviceGroupName {
    /// The most bytes that a name has.
    static let maxBytes = 256

    /// Reads a segment of a path.
    ///
    /// - Throws: `invalid_field` for a name that no group can have.
    static func read(_ segment: String?) throws(Problem) -> String {
        guard let name = segment.flatMap(Self.decoded), name.utf8.count <= Self.maxBytes, ValueRules.isGroupName(name)
        else {
            throw Problem(
                .invalidField,
                "A device group's name has 1 to \(Self.maxBytes) bytes of UTF-8, percent-encoded, and no control characters"
            )
        }
        return name
    }

    /// A segment without its percent escapes (RFC 3986, 2.1); `nil` for a broken escape or bytes that are no text.
    private static func decoded(_ segment: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(segment.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Self.digit), let low = rest.popFirst().flatMap(Self.digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
