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
        let context = Self.context(tenant: tenant, kind: .legacy, version: version)
        let envelope: Envelope
        do {
            envelope = try Envelope(sealing: credential.serverKey, for: context, under: masterKey)
        } catch {
            throw GatewayError(.invalid, "The credential can't be sealed", cause: error)
        }
        self.init(
            tenant: tenant,
            kind: .legacy,
            version: version,
            envelope: envelope,
            endpoint: credential.endpoint,
            fingerprint: Hex.text(SHA256.hash(data: credential.serverKey.revealBytes()).prefix(8)),
            createdAt: now
        )
    }

    /// What a credential's envelope is sealed for.
    static func context(tenant: TenantID, kind: UpstreamKind, version: Int) -> Envelope.Context {
        Envelope.Context(owner: tenant.text, kind: "credential/\(kind.rawValue)", version: version)
    }
}
