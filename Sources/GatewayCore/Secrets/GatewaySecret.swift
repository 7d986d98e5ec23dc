/// Random secrets of the gateway's own, made on the first start and sealed by the master key, so that rotating the
/// master key changes neither.
package enum GatewaySecret: String, Sendable, CaseIterable {
    /// Keys the digests of API keys.
    case keyPepper = "key_pepper"
    /// The root of the audit's pseudonyms and seals.
    case auditKey = "audit_key"
    /// Signs the audit's checkpoints.
    case auditSigningKey = "audit_signing_key"

    /// What the secret is sealed for.
    package var context: Envelope.Context {
        Envelope.Context(owner: "gateway", kind: self.rawValue, version: 1)
    }
}
