/// Which checkpoint is the latest, signed, so that one that is missing at the end is noticed.
///
/// It is the audit's anchor: the first is made in one transaction with the gateway's secrets, each other with its
/// checkpoint. So a store that is in use has one, however much of the audit is gone, and through the checkpoint it stands
/// for the ends of all chains.
package struct CheckpointEnd: Sendable, Hashable {
    /// The latest checkpoint's number; 0 before the first.
    package var number: Int
    /// The latest checkpoint's digest; zeros before the first.
    package var digest: [UInt8]
    /// The Ed25519 signature of the text.
    package var signature: [UInt8]

    /// The end of a row of checkpoints as it was stored.
    package init(number: Int, digest: [UInt8], signature: [UInt8]) {
        (self.number, self.digest, self.signature) = (number, digest, signature)
    }

    /// The text that is signed.
    package var text: [UInt8] {
        Array("fcm-gateway audit end 1\nnumber \(self.number)\ndigest \(Hex.text(self.digest))\n".utf8)
    }
}
