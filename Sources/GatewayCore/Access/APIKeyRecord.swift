/// A key as it is stored: everything but the key itself.
package struct APIKeyRecord: Sendable, Hashable {
    /// The public part that names the key.
    package var id: String
    /// The tenant it belongs to.
    package var tenant: TenantID
    /// Its name for people.
    package var name: String
    /// The keyed digest of the whole key.
    package var digest: [UInt8]
    /// What it may be used for.
    package var scopes: Set<Scope>
    /// Topics that it may address, by prefix; empty means all.
    package var topicPrefixes: [String]
    /// When it was made.
    package var createdAt: Timestamp
    /// From when on it is refused, if ever.
    package var expiresAt: Timestamp?
    /// When it was revoked, if it was.
    package var revokedAt: Timestamp?

    /// A key's record.
    package init(
        id: String,
        tenant: TenantID,
        name: String,
        digest: [UInt8],
        scopes: Set<Scope>,
        topicPrefixes: [String],
        createdAt: Timestamp,
        expiresAt: Timestamp? = nil,
        revokedAt: Timestamp? = nil
    ) {
        self.id = id
        self.tenant = tenant
        self.name = name
        self.digest = digest
        self.scopes = scopes
        self.topicPrefixes = topicPrefixes
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.revokedAt = revokedAt
    }

    /// Whether the key is accepted at a moment.
    package func isAlive(at now: Timestamp) -> Bool {
        if self.revokedAt != nil { return false }
        guard let expiresAt = self.expiresAt else { return true }
        return now < expiresAt
    }

    /// Whether the key may address a topic.
    package func mayAddress(topic: String) -> Bool {
        self.topicPrefixes.isEmpty || self.topicPrefixes.contains { topic.hasPrefix($0) }
    }
}
