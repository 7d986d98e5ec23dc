/// The recipients of a message.
package enum Target: Sendable, Hashable {
    /// The kinds of target. The set is bounded.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case token, tokens
        case installation = "fid"
        case installations = "fids"
        case topic, condition, group
    }

    case token(String)
    /// 1 to 1,000 registration tokens. A repeated token counts as another recipient.
    case tokens([String])
    case installation(String)
    case installations([String])
    case topic(TopicName)
    case condition(TopicCondition)
    /// A device group, by FCM's opaque key.
    case notificationKey(String)
    /// A device group, by its tenant's name for the group. Messages are sent to the group's key.
    case deviceGroup(String)

    package static let maxRecipients = 1_000

    package var kind: Kind {
        switch self {
        case .token: .token
        case .tokens: .tokens
        case .installation: .installation
        case .installations: .installations
        case .topic: .topic
        case .condition: .condition
        case .notificationKey, .deviceGroup: .group
        }
    }

    /// The number of outcomes in an answer: one for each listed recipient, or one for a target that is not a list.
    package var recipientCount: Int {
        switch self {
        case .tokens(let tokens): tokens.count
        case .installations(let ids): ids.count
        case .token, .installation, .topic, .condition, .notificationKey, .deviceGroup: 1
        }
    }

    /// The listed recipients. `nil` for a target that is not a list.
    package var listed: [String]? {
        switch self {
        case .tokens(let texts), .installations(let texts): texts
        case .token, .installation, .topic, .condition, .notificationKey, .deviceGroup: nil
        }
    }

    /// True if the answer is a list of results, even for one recipient.
    package var isList: Bool { self.listed != nil }

    /// The number of listed recipients that repeat earlier recipients.
    package var repeatedRecipients: Int {
        self.listed.map { texts in texts.count - Set(texts.map { Array($0.utf8) }).count } ?? 0
    }

    /// Returns the maximum size, in bytes, of an answer with `recipients` outcomes. FCM's answers are several times
    /// smaller: a message name of about fifty characters, or an error, for each recipient.
    package static func maxAnswerBytes(recipients: Int) -> Int {
        max(64 * 1024, 300 * recipients)
    }

    /// The maximum size of the payload, in bytes (T9 MessageTooBig). The limit is lower for topics.
    package var maxPayloadBytes: Int {
        switch self {
        case .topic, .condition: 2_048
        case .token, .tokens, .installation, .installations, .notificationKey, .deviceGroup: 4_096
        }
    }
}

/// A validated topic name, without the `/topics/` prefix (L-TOPIC).
package struct TopicName: Sendable, Hashable, CustomStringConvertible {
    /// The longest name that FCM's client libraries allow.
    package static let maxLength = 900
    package static let legacyPrefix = "/topics/"

    package let text: String

    /// Accepts 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %`, and returns `nil` for any other text. Decodes nothing.
    package init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.maxLength, text.utf8.allSatisfy(Self.isTopicCharacter) else {
            return nil
        }
        self.text = text
    }

    init?(legacy to: String) {
        guard Self.hasLegacyPrefix(to) else { return nil }
        self.init(String(decoding: to.utf8.dropFirst(Self.legacyPrefix.utf8.count), as: UTF8.self))
    }

    /// True if a legacy `to` addresses a topic: it starts with ``legacyPrefix``, compared byte by byte (L-TOPIC).
    ///
    /// A combining mark after the prefix changes the prefix's last character, but FCM still reads the prefix.
    package static func hasLegacyPrefix(_ to: String) -> Bool {
        to.utf8.starts(with: Self.legacyPrefix.utf8)
    }

    package var description: String { self.text }

    static func isTopicCharacter(_ byte: UInt8) -> Bool {
        byte.isUnreserved || byte == UInt8(ascii: "%")
    }
}

/// The bounds of a registration token, or of an installation id in its place.
package enum RegistrationToken {
    /// The maximum number of bytes, far more than FCM's tokens have.
    package static let maxBytes = 4_096

    /// True if a text can name a device. Such a text is within the bounds and not empty. It addresses nothing else in a
    /// path or in a legacy `to`.
    package static func isPlausible(_ text: String) -> Bool {
        PercentEncoding.isAddressable(text) && Self.isWithinBounds(text) && !TopicName.hasLegacyPrefix(text)
    }

    /// True if a text has at most ``maxBytes``, and no control characters.
    package static func isWithinBounds(_ text: String) -> Bool { ValueRules.isLabel(text, maxBytes: Self.maxBytes) }
}

extension Sequence<String> {
    /// True if a token is in the sequence. Tokens are compared by bytes, because some tokens that FCM distinguishes are
    /// equal as Swift strings.
    package func containsToken(_ token: String) -> Bool {
        self.contains { $0.utf8.elementsEqual(token.utf8) }
    }
}
