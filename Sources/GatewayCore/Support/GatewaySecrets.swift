/// The gateway's own random secrets. The first start makes them and seals them by the master key, so they survive a change
/// of the master key.
package enum GatewaySecret: String, Sendable, CaseIterable {
    /// Keys the digests of API keys.
    case keyPepper = "key_pepper"
    /// The root of the audit's pseudonyms and seals.
    case auditKey = "audit_key"
    /// Signs the audit's checkpoints.
    case auditSigningKey = "audit_signing_key"

    package var context: Envelope.Context {
        Envelope.Context(owner: "gateway", kind: self.rawValue, version: 1)
    }
}

/// Stores the gateway's own secrets, sealed.
package protocol GatewaySecretStore: Sendable {
    /// Returns one sealed secret for each candidate, and stores the candidates of those that are absent. With the first
    /// secrets of an unused store, it stores the end of the checkpoints that are to follow.
    func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope]
}

/// The gateway's own secrets, opened (``GatewaySecret``).
package struct GatewaySecrets: Sendable {
    package let keyPepper: Secret
    package let auditKey: Secret
    /// `nil` in a store that no gateway with checkpoints has served.
    package let auditSigningKey: Secret?

    /// Reads the secrets from the store, and makes them on the first start.
    ///
    /// Throws `invalid` if they do not open, because the store was made with another master key.
    package init(store: any GatewaySecretStore, masterKey: MasterKey) async throws(GatewayError) {
        var candidates: [GatewaySecret: Envelope] = [:]
        let signingKey = Secret(randomBytes: 32)
        for secret in GatewaySecret.allCases {
            do {
                candidates[secret] = try Envelope(
                    sealing: secret == .auditSigningKey ? signingKey : Secret(randomBytes: 32),
                    for: secret.context,
                    under: masterKey
                )
            } catch {
                throw GatewayError(.invalid, "A fresh secret can't be sealed", cause: error)
            }
        }
        let end = try AuditSigner(signingKey: signingKey).end()
        try self.init(stored: try await store.gatewaySecrets(orInsert: candidates, at: end), masterKey: masterKey)
    }

    /// Opens stored secrets. Throws `invalid` if one does not open, or if the pepper or the audit's key is missing.
    package init(stored: [GatewaySecret: Envelope], masterKey: MasterKey) throws(GatewayError) {
        self.keyPepper = try Self.open(.keyPepper, stored, masterKey)
        self.auditKey = try Self.open(.auditKey, stored, masterKey)
        let hasSigningKey = stored[.auditSigningKey] != nil
        self.auditSigningKey = hasSigningKey ? try Self.open(.auditSigningKey, stored, masterKey) : nil
    }

    /// Signs the audit's checkpoints.
    ///
    /// - Throws: `invalid` if the store has no key for it.
    package func auditSigner() throws(GatewayError) -> AuditSigner {
        guard let key = self.auditSigningKey else {
            throw GatewayError(
                .invalid,
                "The store has no key that signs the audit's checkpoints; start the gateway once"
            )
        }
        return try AuditSigner(signingKey: key)
    }

    /// Returns the key that verifies the audit's signatures, or `nil` in a store that no gateway with checkpoints has served.
    ///
    /// - Throws: `invalid` for a malformed key.
    package func auditPublicKey() throws(GatewayError) -> AuditPublicKey? {
        self.auditSigningKey == nil ? nil : try self.auditSigner().publicKey
    }

    private static func open(
        _ secret: GatewaySecret,
        _ stored: [GatewaySecret: Envelope],
        _ masterKey: MasterKey
    ) throws(GatewayError) -> Secret {
        do {
            guard let envelope = stored[secret] else {
                throw GatewayError(.invalid, "The store lacks the gateway's own secrets")
            }
            return try envelope.open(for: secret.context, under: masterKey)
        } catch {
            throw GatewayError(
                .invalid,
                "The store was made with another master key: its secrets do not open",
                cause: error
            )
        }
    }
}
