/// Bounds of what an upstream's answer may hold; an answer beyond them is not understood (`upstream_protocol`).
///
/// FCM itself stays far below them: 20 members in a group, message ids of 40 bytes, tokens of 200. Counts are added up,
/// ids and tokens are stored in the audit, in the list of retired tokens and by callers: a hostile or broken server must
/// be able to overflow, fill or mislead none of these.
package enum AnswerBounds {
    /// Members of a device group that an answer may count or name as reached, and as failed.
    package static let maxMembers = 1_000
    /// Bytes of a message id, and of what FCM tells of a device, such as its platform.
    static let maxLabelBytes = 512
    /// Characters of a refusal's text that are shown to people.
    private static let maxTextLength = 200

    /// Whether a text can be FCM's id of a message.
    package static func isMessageID(_ text: String) -> Bool {
        text.utf8.count <= Self.maxLabelBytes && Self.isVisible(text)
    }

    /// Whether a text can be a registration token, a device group's key, or an access token.
    ///
    /// What a topic is addressed by is none: a caller who stores it as a token would send to everybody.
    package static func isToken(_ text: String) -> Bool {
        RegistrationToken.isPlausible(text) && Self.isVisible(text)
    }

    /// Whether a text that FCM tells of a device is short enough to be handed on.
    static func isLabel(_ text: String?) -> Bool {
        text.map { $0.utf8.count <= Self.maxLabelBytes } ?? true
    }

    /// The beginning of a refusal's text, for people.
    ///
    /// Counted in Unicode scalars: a single `Character` can be as long as the whole answer.
    package static func beginning(of text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maxTextLength)))
    }

    private static func isVisible(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
