import Crypto

/// Seals what is kept of one send: answers name tokens, which no store or backup holds in clear.
///
/// The keys are derived from the tenant's own, which is lost with its salt, and are used for one record alone. What is
/// sealed is bound to its record and its part in it, so that rows can't be exchanged.
struct IdempotencySealer: Sendable {
    /// What is sealed.
    enum Part: String {
        case progress
        case answer
    }

    private let key: SymmetricKey

    /// The sealer of a record.
    init(of identity: IdempotencyIdentity, messageID: String, _ profile: TenantProfile) {
        self.key = Self.key(for: "record \(identity.route.rawValue) \(messageID)", identity, profile)
    }

    /// Seals a part.
    ///
    /// - Returns: `nil` when the cryptographic library fails, which it does not for keys of 256 bits.
    func seal(_ bytes: [UInt8], as part: Part) -> [UInt8]? {
        (try? AES.GCM.seal(bytes, using: self.key, authenticating: Array(part.rawValue.utf8)))?.combined
            .map { [UInt8]($0) }
    }

    /// Opens a part; `nil` for bytes of another record or part, or changed ones.
    func open(_ sealed: [UInt8], as part: Part) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let bytes = try? AES.GCM.open(box, using: self.key, authenticating: Array(part.rawValue.utf8))
        else { return nil }
        return [UInt8](bytes)
    }

    /// What tells a tenant's requests apart that carry the same key.
    ///
    /// Keyed, so that whoever has the store alone can't try out what a body may have been.
    static func fingerprint(
        of request: KeyedRequest,
        _ identity: IdempotencyIdentity,
        _ profile: TenantProfile
    ) -> [UInt8] {
        let code = HMAC<SHA256>
            .authenticationCode(for: request.digest, using: Self.key(for: "fingerprint", identity, profile))
        return [UInt8](code)
    }

    private static func key(
        for use: String,
        _ identity: IdempotencyIdentity,
        _ profile: TenantProfile
    ) -> SymmetricKey {
        HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: profile.pseudonymizer.sealingKey,
                salt: identity.keyDigest,
                info: Array("fcm-gateway idempotency 1 \(use)".utf8),
                outputByteCount: 32
            )
    }
}
