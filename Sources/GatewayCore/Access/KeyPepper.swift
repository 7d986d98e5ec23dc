import Crypto

/// Turns keys into the digests that are stored in their place.
package struct KeyPepper: Sendable {
    private let secret: Secret

    /// Digests under this secret.
    package init(_ secret: Secret) {
        self.secret = secret
    }

    /// The digest to store: HMAC-SHA256 of the whole key.
    package func digest(of key: APIKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: key.secret.revealBytes(), using: self.secret.symmetricKey))
    }

    /// Whether a key has this digest, in constant time.
    package func matches(_ key: APIKey, digest: [UInt8]) -> Bool {
        HMAC<SHA256>
            .isValidAuthenticationCode(
                digest,
                authenticating: key.secret.revealBytes(),
                using: self.secret.symmetricKey
            )
    }
}
