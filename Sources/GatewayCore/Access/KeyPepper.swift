import Crypto

/// Turns keys into the digests that are stored in their place.
package struct KeyPepper: Sendable {
    private let keyed: HMAC<SHA256>

    /// Digests under this secret.
    package init(_ secret: Secret) {
        self.keyed = HMAC<SHA256>(key: secret.symmetricKey)
    }

    /// The digest to store: HMAC-SHA256 of the whole key.
    package func digest(of key: APIKey) -> [UInt8] {
        Array(self.code(of: key.secret.revealBytes()[...]))
    }

    /// Whether a key's bytes have this digest, in constant time.
    package func matches(_ key: ArraySlice<UInt8>, digest: [UInt8]) -> Bool {
        self.code(of: key) == digest
    }

    private func code(of key: ArraySlice<UInt8>) -> HMAC<SHA256>.MAC {
        // The secret has been absorbed once; each key continues from a copy.
        var hash = self.keyed
        hash.update(data: key)
        return hash.finalize()
    }
}
