import Crypto

/// The operators' bearer token.
package struct AdminToken: Sendable {
    private let digest: [UInt8]
    private let comparisonKey = SymmetricKey(size: .bits256)

    /// Accepts this token and no other.
    package init(_ secret: Secret) {
        self.digest = Array(
            HMAC<SHA256>.authenticationCode(for: secret.revealBytes(), using: self.comparisonKey)
        )
    }

    /// Whether a presented token is the right one, in time that does not depend on how much of it is right.
    package func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
        HMAC<SHA256>
            .isValidAuthenticationCode(
                self.digest,
                authenticating: bytes,
                using: self.comparisonKey
            )
    }
}
