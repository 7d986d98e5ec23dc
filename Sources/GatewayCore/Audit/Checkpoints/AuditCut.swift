/// The signed word that the oldest records of a chain were removed by retention.
package struct AuditCut: Sendable, Hashable {
    /// Which writer.
    package var writer: Int
    /// The place of the last record that was removed.
    package var sequence: Int
    /// That record's hash, from which the chain goes on.
    package var hash: [UInt8]
    /// When it was removed.
    package var time: Timestamp
    /// The Ed25519 signature of the text.
    package var signature: [UInt8]

    /// A cut as it was stored.
    package init(writer: Int, sequence: Int, hash: [UInt8], time: Timestamp, signature: [UInt8]) {
        (self.writer, self.sequence, self.hash) = (writer, sequence, hash)
        (self.time, self.signature) = (time, signature)
    }

    /// The text that is signed.
    package var text: [UInt8] {
        let place = "writer \(self.writer)\nsequence \(self.sequence)\nhash \(Hex.text(self.hash))"
        return Array("fcm-gateway audit cut 1\n\(place)\ntime \(self.time.microseconds)\n".utf8)
    }

    /// The chain that goes on from here.
    package var chain: AuditChain {
        AuditChain(writer: self.writer, sequence: self.sequence, hash: self.hash)
    }
}
