import Crypto

/// The ends of the first writers' chains, rolled into one digest: chains that have ended say nothing new.
package struct AuditSettledEnds: Sendable, Hashable {
    /// The last writer that is in the digest.
    package private(set) var writer = 0
    /// The digest of all of them.
    package private(set) var digest: [UInt8]

    /// No chains.
    package init() {
        self.digest = SHA256.hash(data: Array("fcm-gateway audit settled 1".utf8)).bytes
    }

    /// Chains of which only the digest is known; without a digest, none.
    package init(writer: Int, digest: [UInt8]?) {
        self.init()
        if let digest { (self.writer, self.digest) = (writer, digest) }
    }

    /// Adds the next writer's end.
    package mutating func append(_ head: AuditHead) {
        self.writer = head.writer
        let line = "\(head.writer) \(head.sequence) \(Hex.text(head.hash)) \(head.state.rawValue)\n"
        self.digest = SHA256.hash(data: self.digest + Array(line.utf8)).bytes
    }
}
