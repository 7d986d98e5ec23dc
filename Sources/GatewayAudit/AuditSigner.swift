import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Signs checkpoints, truncations and what belongs to them with the store's own Ed25519 key.
///
/// Its calls throw `invalid` when the cryptographic library refuses, which it does not do for a whole key.
package struct AuditSigner: Sendable {
    private let key: Curve25519.Signing.PrivateKey

    /// A signer by its secret of 32 bytes; throws `invalid` for another length.
    package init(signingKey: Secret) throws(GatewayError) {
        do {
            self.key = try Curve25519.Signing.PrivateKey(rawRepresentation: signingKey.revealBytes())
        } catch {
            throw GatewayError(.invalid, "The audit's signing key is not a key", cause: error)
        }
    }

    package var publicKey: AuditPublicKey { AuditPublicKey(key: self.key.publicKey) }

    package func sign(_ checkpoint: AuditCheckpoint) throws(GatewayError) -> SignedCheckpoint {
        let text = checkpoint.text
        return SignedCheckpoint(number: checkpoint.number, text: text, signature: try self.sign(text))
    }

    /// Signs which checkpoints there are; by default none yet.
    package func end(
        at latest: AuditCheckpoint.Link = .none,
        removed: AuditCheckpoint.Link = .none
    ) throws(GatewayError) -> CheckpointEnd {
        var end = CheckpointEnd(latest: latest, removed: removed)
        end.signature = try self.sign(end.text)
        return end
    }

    /// The word that a chain's records up to its end here were removed.
    package func truncation(of chain: AuditChain, at time: Timestamp) throws(GatewayError) -> AuditTruncation {
        var truncation = AuditTruncation(chain, time: time, signature: [])
        truncation.signature = try self.sign(truncation.text)
        return truncation
    }

    private func sign(_ text: [UInt8]) throws(GatewayError) -> [UInt8] {
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

    fileprivate init(key: Curve25519.Signing.PublicKey) {
        self.key = key
    }

    /// The key of 32 bytes in base64, with or without white space around; `nil` for anything else.
    package init?(base64 text: String) {
        let word = text.trimmingPrefix(while: \.isWhitespace).prefix { !$0.isWhitespace }
        guard let bytes = Data(base64Encoded: String(word)),
            let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes)
        else { return nil }
        self.key = key
    }

    /// The 32 bytes in base64.
    package var base64: String { self.key.rawRepresentation.base64EncodedString() }

    package func isGenuine(_ signature: [UInt8], of text: [UInt8]) -> Bool {
        self.key.isValidSignature(signature, for: text)
    }
}
