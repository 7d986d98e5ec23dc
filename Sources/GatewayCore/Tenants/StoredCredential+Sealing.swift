import Crypto

extension StoredCredential {
    /// Seals a legacy server key.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    init(
        sealing credential: LegacyCredential,
        tenant: TenantID,
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        try self.init(
            sealing: credential.serverKey,
            endpoint: credential.endpoint,
            tenant: tenant,
            kind: .legacy,
            version: version,
            under: masterKey,
            at: now
        )
    }

    /// Seals a service account.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    init(
        sealing credential: ServiceAccountCredential,
        tenant: TenantID,
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        try self.init(
            sealing: credential.sealedForm,
            endpoint: credential.endpoint,
            tenant: tenant,
            kind: .v1,
            version: version,
            under: masterKey,
            at: now
        )
    }

    private init(
        sealing secret: Secret,
        endpoint: String?,
        tenant: TenantID,
        kind: UpstreamKind,
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        let context = Self.context(tenant: tenant, kind: kind, version: version)
        let envelope: Envelope
        do {
            envelope = try Envelope(sealing: secret, for: context, under: masterKey)
        } catch {
            throw GatewayError(.invalid, "The credential can't be sealed", cause: error)
        }
        self.init(
            tenant: tenant,
            kind: kind,
            version: version,
            envelope: envelope,
            endpoint: endpoint,
            fingerprint: Hex.text(SHA256.hash(data: secret.revealBytes()).prefix(8)),
            createdAt: now
        )
    }

    /// What a credential's envelope is sealed for.
    static func context(tenant: TenantID, kind: UpstreamKind, version: Int) -> Envelope.Context {
        Envelope.Context(owner: tenant.text, kind: "credential/\(kind.rawValue)", version: version)
    }
}
