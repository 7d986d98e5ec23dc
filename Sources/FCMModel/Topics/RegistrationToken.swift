/// What a registration token, or an installation id in its place, can be at all.
package enum RegistrationToken {
    /// Far beyond what FCM issues, in bytes.
    package static let maxBytes = 4_096

    /// Whether a text can stand for a device: neither empty nor too long, nor what would address something else in a
    /// path or in a legacy `to`.
    package static func isPlausible(_ text: String) -> Bool {
        PercentEncoding.isAddressable(text) && text.utf8.count <= Self.maxBytes && !TopicName.hasLegacyPrefix(text)
    }
}

extension Sequence<String> {
    /// Whether a token is among these, compared by its bytes: as texts, some that FCM tells apart are equal.
    package func containsToken(_ token: String) -> Bool {
        self.contains { $0.utf8.elementsEqual(token.utf8) }
    }
}
