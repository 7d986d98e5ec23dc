import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
