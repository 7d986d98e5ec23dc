import Crypto

/// The key-encryption key: 256 bits from a file or the environment, under which everything stored is sealed.
///
/// While the key is being changed it knows its predecessor: it opens what either of the two has sealed, and seals by
/// itself alone.
package struct MasterKey: Sendable {
    /// The length in bytes.
    package static let byteCount = 32

    let key: SymmetricKey
    /// The key before this one, for as long as something may still be sealed by it.
    let previous: SymmetricKey?

    /// Takes a key, and the one before it, of exactly ``byteCount`` bytes each; `nil` for any other length.
    package init?(_ secret: Secret, previous: Secret? = nil) {
        guard secret.count == Self.byteCount, previous.map(\.count) ?? Self.byteCount == Self.byteCount else {
            return nil
        }
        self.key = secret.symmetricKey
        self.previous = previous?.symmetricKey
    }

    /// Whether the key before this one is known.
    package var hasPrevious: Bool { self.previous != nil }

    /// Tells keys apart without telling anything of them: the first 16 hexadecimal digits of a keyed hash.
    package var fingerprint: String {
        let code = HMAC<SHA256>.authenticationCode(for: Array("fcm-gateway master key 1".utf8), using: self.key)
        return Hex.text(code.prefix(8))
    }
}

extension MasterKey: CustomStringConvertible, CustomReflectable {
    /// The fingerprint.
    package var description: String { "master key \(self.fingerprint)" }
    /// A mirror without children, so that dumps tell nothing either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
