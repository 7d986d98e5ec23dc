import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension StoredCredential {
    /// Seals a legacy server key.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    init(
        sealing credential: LegacyCredential,
        tenant: TenantID,
        salt: [UInt8],
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        try self.init(
            sealing: credential.serverKey,
            endpoint: credential.endpoint,
            tenant: tenant,
            salt: salt,
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
        salt: [UInt8],
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        try self.init(
            sealing: credential.sealedForm,
            endpoint: credential.endpoint,
            tenant: tenant,
            salt: salt,
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
        salt: [UInt8],
        kind: UpstreamKind,
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        self.init(
            tenant: tenant,
            kind: kind,
            version: version,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: endpoint,
            fingerprint: Hex.text(SHA256.hash(data: secret.revealBytes()).prefix(8)),
            createdAt: now
        )
        do {
            self.envelope = try Envelope(sealing: secret, for: self.context(salt: salt), under: masterKey)
        } catch {
            throw GatewayError(.invalid, "The credential can't be sealed", cause: error)
        }
    }

    /// What a credential's envelope is sealed for.
    static func context(tenant: TenantID, kind: UpstreamKind, version: Int, details: [String?]) -> Envelope.Context {
        Envelope.Context(
            owner: tenant.text,
            kind: "credential/\(kind.rawValue)",
            version: version,
            details: details
        )
    }
}
