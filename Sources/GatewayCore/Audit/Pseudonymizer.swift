import Crypto

/// Makes a tenant's pseudonyms: HMAC-SHA256 under a key derived from the audit key and the tenant's salt.
///
/// With the salt destroyed, nobody can tell any more which token a pseudonym stood for.
package struct Pseudonymizer: Sendable {
    private let keyed: HMAC<SHA256>
    /// Seals what must be stored of a tenant's tokens; a key of its own, lost with the salt as well.
    let sealingKey: SymmetricKey

    /// Derives a tenant's key.
    package init(auditKey: Secret, tenantSalt: [UInt8]) {
        func key(for use: String) -> SymmetricKey {
            HKDF<SHA256>
                .deriveKey(
                    inputKeyMaterial: auditKey.symmetricKey,
                    salt: tenantSalt,
                    info: Array(use.utf8),
                    outputByteCount: 32
                )
        }
        self.keyed = HMAC<SHA256>(key: key(for: "fcm-gateway audit pseudonym 1"))
        self.sealingKey = key(for: "fcm-gateway token sealing 1")
    }

    /// The pseudonym of a token, topic or other name.
    package func pseudonym(of text: String) -> Pseudonym {
        // The key has been absorbed once; each text continues from a copy.
        var hash = self.keyed
        hash.update(data: Array(text.utf8))
        return Pseudonym(bytes: hash.finalize())
    }
}
