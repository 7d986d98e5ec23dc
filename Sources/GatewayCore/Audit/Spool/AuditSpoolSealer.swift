import Crypto

/// Seals what is spooled: each batch under a key derived from the audit key, and each seal over the one before it.
package struct AuditSpoolSealer: Sendable {
    /// How many bytes a seal has.
    static let byteCount = 32

    private let key: SymmetricKey

    /// Derives the key.
    package init(auditKey: Secret) {
        self.key = HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: auditKey.symmetricKey,
                info: Array("fcm-gateway audit spool 1".utf8),
                outputByteCount: 32
            )
    }

    /// The seal of what follows another seal, or of a file's first bytes after none.
    func seal(of bytes: some Sequence<UInt8>, after previous: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: previous + bytes, using: self.key))
    }

    /// Whether a seal is the one that belongs there.
    func isGenuine(_ seal: ArraySlice<UInt8>, of bytes: some Sequence<UInt8>, after previous: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(Array(seal), authenticating: previous + bytes, using: self.key)
    }
}
