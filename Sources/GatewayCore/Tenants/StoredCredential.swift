/// A tenant's credential for one upstream, as the store keeps it.
package struct StoredCredential: Sendable, Hashable {
    /// The tenant it belongs to.
    package var tenant: TenantID
    /// The protocol it is for.
    package var kind: UpstreamKind
    /// 1 for the first; rises with every replacement.
    package var version: Int
    /// The sealed secret: for legacy the server key, for v1 the service account.
    package var envelope: Envelope
    /// Another endpoint than the configured one: a private server or an emulator.
    package var endpoint: String?
    /// The first 16 hexadecimal digits of the secret's SHA-256, to recognise it by.
    package var fingerprint: String
    /// When this version was put.
    package var createdAt: Timestamp

    /// A credential.
    package init(
        tenant: TenantID,
        kind: UpstreamKind,
        version: Int,
        envelope: Envelope,
        endpoint: String?,
        fingerprint: String,
        createdAt: Timestamp
    ) {
        self.tenant = tenant
        self.kind = kind
        self.version = version
        self.envelope = envelope
        self.endpoint = endpoint
        self.fingerprint = fingerprint
        self.createdAt = createdAt
    }

    /// What the envelope is sealed for.
    ///
    /// - Parameter salt: of the tenant; with it the credential belongs to this life of the tenant alone.
    /// - Returns: what is to be authenticated.
    package func context(salt: [UInt8]) -> Envelope.Context {
        Self.context(
            tenant: self.tenant,
            kind: self.kind,
            version: self.version,
            details: self.details(salt: salt)
        )
    }

    /// What the envelope is sealed for beside whose and which it is: where it may be sent.
    func details(salt: [UInt8]) -> [String?] {
        [self.endpoint, Hex.text(salt)]
    }
}
