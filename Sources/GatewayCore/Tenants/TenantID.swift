import FCMModel

/// The name of a tenant in paths and keys: `[a-z0-9][a-z0-9-]{0,62}`.
package struct TenantID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The name.
    package let text: String

    /// Accepts a well-formed name; anything else is `nil`.
    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard (1...63).contains(bytes.count), bytes.first != UInt8(ascii: "-"),
            bytes.allSatisfy({ $0.isLowerAlphanumeric || $0 == UInt8(ascii: "-") })
        else {
            return nil
        }
        self.text = String(text)
    }

    /// The name.
    package var description: String { self.text }

    /// Orders by name.
    package static func < (lhs: TenantID, rhs: TenantID) -> Bool { lhs.text < rhs.text }
}
