/// A validated topic name, without the `/topics/` prefix (L-TOPIC).
package struct TopicName: Sendable, Hashable, CustomStringConvertible {
    /// The longest name that FCM's client libraries allow.
    package static let maxLength = 900
    /// What stands before a name in a legacy `to`.
    package static let legacyPrefix = "/topics/"

    /// The name as sent.
    package let text: String

    /// Accepts 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %`; anything else is `nil`.
    ///
    /// Nothing is decoded.
    package init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.maxLength, text.utf8.allSatisfy(Self.isTopicCharacter) else {
            return nil
        }
        self.text = text
    }

    /// Whether a legacy `to` addresses a topic: it starts with ``legacyPrefix``, compared byte by byte (L-TOPIC).
    ///
    /// A combining mark after the prefix would change its last character, though not what FCM reads.
    package static func hasLegacyPrefix(_ to: String) -> Bool {
        to.utf8.starts(with: Self.legacyPrefix.utf8)
    }

    /// The name as sent.
    package var description: String { self.text }

    /// Whether a byte may stand in a topic name.
    static func isTopicCharacter(_ byte: UInt8) -> Bool {
        byte.isUnreserved || byte == UInt8(ascii: "%")
    }
}
