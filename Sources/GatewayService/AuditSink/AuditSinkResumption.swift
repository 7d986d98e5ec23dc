import Foundation
import GatewayCore

/// A second sink's signed word that the bytes since its last checkpoint were broken off and follow again.
struct AuditSinkResumption: Sendable, Hashable {
    /// The number of the last checkpoint in the sink; 0 for none.
    var after: Int
    /// How many bytes stand between that checkpoint's line and this one.
    var skipped: Int
    /// SHA-256 of those bytes.
    var digest: [UInt8]
    /// The Ed25519 signature of the text.
    var signature: [UInt8]

    /// The text that is signed.
    var text: [UInt8] {
        let place = "after \(self.after)\nskipped \(self.skipped)\ndigest \(Hex.text(self.digest))"
        return Array("fcm-gateway audit resumed 1\n\(place)\n".utf8)
    }
}
