import Crypto

/// An opened legacy credential.
package struct LegacyCredential: Sendable {
    /// The server key that authorises calls.
    package let serverKey: Secret
    /// The server to call instead of the configured one.
    package let endpoint: String?

    /// The first 16 hexadecimal digits of the server key's SHA-256, to recognise it by.
    package var fingerprint: String {
        Hex.text(SHA256.hash(data: self.serverKey.revealBytes()).prefix(8))
    }

    /// A credential in clear.
    package init(serverKey: Secret, endpoint: String?) {
        self.serverKey = serverKey
        self.endpoint = endpoint
    }

    /// Opens a stored credential; `nil` when it does not open.
    init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey) {
        guard let secret = try? stored.envelope.open(for: stored.context(salt: salt), under: masterKey) else {
            return nil
        }
        self.init(serverKey: secret, endpoint: stored.endpoint)
    }
}
