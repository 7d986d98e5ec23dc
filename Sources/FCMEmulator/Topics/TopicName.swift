/// The rule for topic names: 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %` (L-TOPIC, C-NAME).
enum TopicName {
    /// What precedes a topic's name in `to`.
    static let prefix = "/topics/"

    private static let maxLength = 900

    /// Whether the bytes are a topic's name, without prefix.
    static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        (1...Self.maxLength).contains(bytes.count) && bytes.allSatisfy(Self.isNameByte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            return true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "%"):
            return true
        default:
            return false
        }
    }
}
