import Crypto

/// Makes a tenant's pseudonyms: HMAC-SHA256 under a key derived from the audit key and the tenant's salt.
///
/// With the salt destroyed, nobody can tell any more which token a pseudonym stood for.
package struct Pseudonymizer: Sendable {
    private let keyed: HMAC<SHA256>

    /// Derives a tenant's key.
    package init(auditKey: Secret, tenantSalt: [UInt8]) {
        let key = HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: auditKey.symmetricKey,
                salt: tenantSalt,
                info: Array("fcm-gateway audit pseudonym 1".utf8),
                outputByteCount: 32
            )
        self.keyed = HMAC<SHA256>(key: key)
    }

    /// The pseudonym of a token, topic or other name.
    package func pseudonym(of text: String) -> Pseudonym {
        // The key has been absorbed once; each text continues from a copy.
        var hash = self.keyed
        hash.update(data: Array(text.utf8))
        return Pseudonym(bytes: hash.finalize())
    }
}
