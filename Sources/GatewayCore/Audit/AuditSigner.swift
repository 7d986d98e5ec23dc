import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Signs checkpoints, truncations and what belongs to them with the store's own Ed25519 key.
package struct AuditSigner: Sendable {
    private let key: Curve25519.Signing.PrivateKey

    /// A signer by its secret: 32 bytes.
    ///
    /// - Throws: `invalid` for a secret of another length.
    package init(signingKey: Secret) throws(GatewayError) {
        do {
            self.key = try Curve25519.Signing.PrivateKey(rawRepresentation: signingKey.revealBytes())
        } catch {
            throw GatewayError(.invalid, "The audit's signing key is not a key", cause: error)
        }
    }

    /// What signatures are checked with.
    package var publicKey: AuditPublicKey { AuditPublicKey(self.key.publicKey) }

    /// A checkpoint with its signature.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses, which it does not do for a whole key.
    package func sign(_ checkpoint: AuditCheckpoint) throws(GatewayError) -> SignedCheckpoint {
        let text = checkpoint.text
        return SignedCheckpoint(number: checkpoint.number, text: text, signature: try self.sign(text))
    }

    /// The word that a checkpoint is the latest, or that there is none yet.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    package func end(at checkpoint: SignedCheckpoint?) throws(GatewayError) -> CheckpointEnd {
        let zeros = [UInt8](repeating: 0, count: 32)
        var end = CheckpointEnd(number: checkpoint?.number ?? 0, digest: checkpoint?.digest ?? zeros, signature: [])
        end.signature = try self.sign(end.text)
        return end
    }

    /// A truncation of a chain, with its signature.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    package func truncation(of chain: AuditChain, at time: Timestamp) throws(GatewayError) -> AuditTruncation {
        var truncation = AuditTruncation(
            writer: chain.writer,
            sequence: chain.sequence,
            hash: chain.hash,
            time: time,
            signature: []
        )
        truncation.signature = try self.sign(truncation.text)
        return truncation
    }

    /// The signature of a text.
    ///
    /// - Throws: `invalid` when the cryptographic library refuses.
    package func sign(_ text: [UInt8]) throws(GatewayError) -> [UInt8] {
        do {
            return Array(try self.key.signature(for: text))
        } catch {
            throw GatewayError(.invalid, "The audit's checkpoint can't be signed", cause: error)
        }
    }
}

/// Checks what ``AuditSigner`` signed; no secret.
package struct AuditPublicKey: Sendable {
    private let key: Curve25519.Signing.PublicKey

    init(_ key: Curve25519.Signing.PublicKey) {
        self.key = key
    }

    /// The key of 32 bytes in base64, with or without white space around; `nil` for anything else.
    package init?(base64 text: String) {
        guard
            let bytes = Data(
                base64Encoded: String(text.trimmingPrefix(while: \.isWhitespace).prefix { !$0.isWhitespace })
            ),
            let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)
        else { return nil }
        self.key = key
    }

    /// The 32 bytes in base64.
    package var base64: String { self.key.rawRepresentation.base64EncodedString() }

    /// Whether a signature is one of a text.
    package func isGenuine(_ signature: [UInt8], of text: [UInt8]) -> Bool {
        self.key.isValidSignature(signature, for: text)
    }
}
