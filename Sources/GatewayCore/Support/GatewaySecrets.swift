/// Random secrets of the gateway's own, made on the first start and sealed by the master key, so that rotating the
/// master key changes neither.
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

/// Keeps the gateway's own secrets, sealed.
package protocol GatewaySecretStore: Sendable {
    /// The sealed secrets of the gateway itself, one for each candidate; absent ones are stored first, as given. With
    /// the first secrets of an unused store goes the end of a row of checkpoints that is still to come.
    func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope]
}

/// The gateway's own secrets, opened; each is described at ``GatewaySecret``.
package struct GatewaySecrets: Sendable {
    package let keyPepper: Secret
    package let auditKey: Secret
    /// `nil` in a store that no gateway that signs them has served.
    package let auditSigningKey: Secret?

    /// Reads the secrets from the store, making them on the first start.
    ///
    /// Throws `invalid` when they do not open, which means that the master key is another one than the store was made
    /// with.
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

    /// Opens secrets that are stored already; throws `invalid` when one does not open, or one is missing without which
    /// nothing works.
    package init(stored: [GatewaySecret: Envelope], masterKey: MasterKey) throws(GatewayError) {
        self.keyPepper = try Self.open(.keyPepper, stored, masterKey)
        self.auditKey = try Self.open(.auditKey, stored, masterKey)
        let hasSigningKey = stored[.auditSigningKey] != nil
        self.auditSigningKey = hasSigningKey ? try Self.open(.auditSigningKey, stored, masterKey) : nil
    }

    /// Signs the audit's checkpoints.
    ///
    /// - Throws: `invalid` when the store has no key for it.
    package func auditSigner() throws(GatewayError) -> AuditSigner {
        guard let key = self.auditSigningKey else {
            throw GatewayError(
                .invalid,
                "The store has no key that signs the audit's checkpoints; start the gateway once"
            )
        }
        return try AuditSigner(signingKey: key)
    }

    /// What checks the audit's signatures; `nil` in a store that no gateway that signs has served.
    ///
    /// - Throws: `invalid` for a key that is none.
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
