package import GatewayCore

extension APIKeyRecord {
    /// The record of a key, with every scope unless told otherwise.
    ///
    /// - Throws: ``SampleError`` for a malformed tenant name.
    package static func sample(
        of key: APIKey,
        tenant: String = "acme",
        pepper: KeyPepper = .sample,
        scopes: Set<Scope> = Set(Scope.allCases),
        topicPrefixes: [String] = [],
        expiresAt: Timestamp? = nil,
        revokedAt: Timestamp? = nil
    ) throws -> APIKeyRecord {
        APIKeyRecord(
            id: key.id,
            tenant: try .sample(tenant),
            name: "sample",
            digest: pepper.digest(of: key),
            scopes: scopes,
            topicPrefixes: topicPrefixes,
            createdAt: .sample,
            expiresAt: expiresAt,
            revokedAt: revokedAt
        )
    }
}

extension KeyPepper {
    /// A pepper that is always the same.
    package static let sample = KeyPepper(.sample("pepper"))
}
