/// The name of a tenant in paths and keys: `[a-z0-9][a-z0-9-]{0,62}`.
package struct TenantID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The name.
    package let text: String

    /// Accepts a well-formed name; anything else is `nil`.
    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard (1...63).contains(bytes.count), bytes.first != UInt8(ascii: "-"), bytes.allSatisfy(Self.isAllowed) else {
            return nil
        }
        self.text = String(text)
    }

    /// The name.
    package var description: String { self.text }

    /// Orders by name.
    package static func < (lhs: TenantID, rhs: TenantID) -> Bool { lhs.text < rhs.text }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
