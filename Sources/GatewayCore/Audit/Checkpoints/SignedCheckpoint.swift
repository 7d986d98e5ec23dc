import Crypto

/// A checkpoint as it is stored: its text, and the signature of that text.
package struct SignedCheckpoint: Sendable, Hashable {
    /// The number under which it is stored.
    package var number: Int
    /// The text that was signed.
    package var text: [UInt8]
    /// The Ed25519 signature of the text.
    package var signature: [UInt8]

    /// A checkpoint as it was stored.
    package init(number: Int, text: [UInt8], signature: [UInt8]) {
        (self.number, self.text, self.signature) = (number, text, signature)
    }

    /// What it says; `nil` for a text that no checkpoint has.
    package var content: AuditCheckpoint? { AuditCheckpoint(text: self.text) }

    /// SHA-256 of the text, by which later checkpoints refer to it.
    package var digest: [UInt8] { SHA256.hash(data: self.text).bytes }
}
