/// What an operator says of a key.
package struct APIKeyDraft: Sendable, Hashable {
    /// The most prefixes that a key may have; each condition is compared with all of them.
    package static let maxTopicPrefixes = 100

    /// Its name for people.
    package var name: String
    /// What it may be used for.
    package var scopes: Set<Scope>
    /// Topics that it may address, by prefix; empty means all.
    package var topicPrefixes: [String]
    /// From when on it is refused, if ever.
    package var expiresAt: Timestamp?

    /// A draft.
    package init(name: String, scopes: Set<Scope>, topicPrefixes: [String] = [], expiresAt: Timestamp? = nil) {
        self.name = name
        self.scopes = scopes
        self.topicPrefixes = topicPrefixes
        self.expiresAt = expiresAt
    }
}
