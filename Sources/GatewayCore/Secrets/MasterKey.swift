import Crypto

/// The key-encryption key: 256 bits from a file or the environment, under which everything stored is sealed.
package struct MasterKey: Sendable {
    /// The length in bytes.
    package static let byteCount = 32

    let key: SymmetricKey

    /// Takes a key of exactly ``byteCount`` bytes; `nil` for any other length.
    package init?(_ secret: Secret) {
        guard secret.count == Self.byteCount else { return nil }
        self.key = secret.symmetricKey
    }
}
