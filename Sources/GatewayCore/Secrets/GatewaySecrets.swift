/// Keeps the gateway's own secrets, sealed.
package protocol GatewaySecretStore: Sendable {
    /// The sealed secrets of the gateway itself; absent ones are stored first, as given.
    ///
    /// - Parameters:
    ///   - candidates: freshly sealed secrets for a first start.
    ///   - end: the end of a row of checkpoints that is still to come, kept with the first secrets of an unused store.
    /// - Returns: what is stored, for every candidate.
    /// - Throws: `storeUnavailable`.
    func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope]
}

/// The gateway's own secrets, opened.
package struct GatewaySecrets: Sendable {
    /// Keys the digests of API keys.
    package let keyPepper: Secret
    /// The root of the audit's pseudonyms and seals.
    package let auditKey: Secret
    /// Signs the audit's checkpoints; `nil` in a store that no gateway that signs them has served.
    package let auditSigningKey: Secret?

    /// Reads the secrets from the store, making them on the first start.
    ///
    /// - Throws: `storeUnavailable`; `invalid` when they do not open, which means that the master key is another one
    ///   than the store was made with.
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
        let end = try AuditSigner(signingKey: signingKey).end(at: nil)
        try self.init(stored: try await store.gatewaySecrets(orInsert: candidates, at: end), masterKey: masterKey)
    }

    /// Opens secrets that are stored already.
    ///
    /// - Throws: `invalid` when one does not open, or one is missing without which nothing works.
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
