import Crypto

/// The state of the audit at one moment: the ends of all its chains, signed and linked to the checkpoints before it.
///
/// Pure: it is the text that is signed, without keys or stores.
package struct AuditCheckpoint: Sendable, Hashable {
    /// A checkpoint as others refer to it.
    package struct Link: Sendable, Hashable {
        /// No checkpoint: what the first one follows.
        package static let none = Link(number: 0, digest: AuditCheckpoint.noDigest)

        package var number: Int
        package var digest: [UInt8]

        package init(number: Int, digest: [UInt8]) {
            (self.number, self.digest) = (number, digest)
        }

        package init(_ checkpoint: SignedCheckpoint) {
            self.init(number: checkpoint.number, digest: checkpoint.digest)
        }

        fileprivate var text: String { "\(self.number) \(Hex.text(self.digest))" }
    }

    /// Numbers from here on are none that a gateway gets to; somebody may have written any.
    package static let numberLimit = 1 << 48
    /// Stands for the digest of the checkpoint before the first.
    static let noDigest = [UInt8](repeating: 0, count: 32)

    /// Dense from 1.
    package var number: Int
    package var time: Timestamp
    /// The digest of the checkpoint before; zeros in the first.
    package var previous: [UInt8]
    /// The chains of all writers up to this one had ended.
    package var settledWriter: Int
    /// The digest of their ends (``AuditSettledEnds``).
    package var settledDigest: [UInt8]
    /// The chains of all writers up to this one are removed whole, by retention.
    package var removedWriter: Int
    /// The ends of the other chains, by rising writer and without their seals.
    package var heads: [AuditHead]
    /// The beginnings of the other chains that lost their first records to retention, by rising writer.
    package var truncations: [AuditChain]

    /// True if another checkpoint says the same of the chains.
    package func says(sameAs other: AuditCheckpoint) -> Bool {
        self.settledWriter == other.settledWriter && self.settledDigest == other.settledDigest
            && self.removedWriter == other.removedWriter && self.heads == other.heads
            && self.truncations == other.truncations
    }
}

extension AuditCheckpoint {
    private static let title = "fcm-gateway audit checkpoint 1"

    /// The text that is signed; every checkpoint has exactly one.
    package var text: [UInt8] {
        var lines = [
            Self.title,
            "number \(self.number)",
            "time \(self.time.microseconds)",
            "previous \(Hex.text(self.previous))",
            "settled \(self.settledWriter) \(Hex.text(self.settledDigest))",
            "removed \(self.removedWriter)",
        ]
        lines += self.heads.map { "head \($0.text)" }
        lines += self.truncations.map { "truncation \($0.writer) \($0.sequence) \(Hex.text($0.hash))" }
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    package init?(text: [UInt8]) {
        guard let whole = String(validating: text, as: UTF8.self) else { return nil }
        var lines = whole.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == Self.title[...] else { return nil }
        func take(_ name: String) -> [Substring] {
            guard let words = lines.popFirst()?.split(separator: " ", omittingEmptySubsequences: false),
                words.count > 1, words[0] == name
            else { return ["", ""] }
            return Array(words.dropFirst())
        }
        // The comparison at the end finds surplus text in a line.
        guard let number = Int(take("number")[0]), let time = Int64(take("time")[0]),
            let previous = Hex.bytes(take("previous")[0]),
            case let settled = take("settled"), settled.count == 2, let settledWriter = Int(settled[0]),
            let settledDigest = Hex.bytes(settled[1]), let removedWriter = Int(take("removed")[0]),
            // Falsified numbers must not lead arithmetic astray.
            number > 0, settledWriter >= 0, (0...settledWriter).contains(removedWriter)
        else { return nil }
        (self.number, self.time) = (number, Timestamp(microseconds: time))
        self.previous = previous
        (self.settledWriter, self.settledDigest, self.removedWriter) = (settledWriter, settledDigest, removedWriter)
        (self.heads, self.truncations) = ([], [])
        for line in lines {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            guard words.count >= 4, let writer = Int(words[1]), let sequence = Int(words[2]),
                let hash = Hex.bytes(words[3])
            else { continue }
            if words.count == 5, let state = AuditHead.State(rawValue: String(words[4])) {
                self.heads.append(AuditHead(writer: writer, sequence: sequence, hash: hash, state: state))
            } else {
                self.truncations.append(AuditChain(writer: writer, sequence: sequence, hash: hash))
            }
        }
        // One comparison in place of a check of every line for its only form.
        guard self.text == text else { return nil }
    }
}

/// A checkpoint as it is stored: its text, and the signature of that text.
package struct SignedCheckpoint: Sendable, Hashable {
    package var number: Int
    package var text: [UInt8]
    package var signature: [UInt8]

    package init(number: Int, text: [UInt8], signature: [UInt8]) {
        (self.number, self.text, self.signature) = (number, text, signature)
    }

    package var content: AuditCheckpoint? { AuditCheckpoint(text: self.text) }

    /// SHA-256 of the text, by which later checkpoints refer to it.
    package var digest: [UInt8] { SHA256.hash(data: self.text).bytes }
}

/// Which checkpoints there are, signed, so that one that is missing at either end is noticed.
///
/// The first is made in one transaction with the gateway's secrets, each other with its checkpoint. So a store that is
/// in use has one, however much of the audit is gone, and through the latest checkpoint it stands for the ends of all
/// chains.
package struct CheckpointEnd: Sendable, Hashable {
    /// The latest checkpoint.
    package var latest: AuditCheckpoint.Link
    /// The truncation marker of the checkpoints: the last one that was removed by age.
    package var removed: AuditCheckpoint.Link
    package var signature: [UInt8]

    package init(
        latest: AuditCheckpoint.Link = .none,
        removed: AuditCheckpoint.Link = .none,
        signature: [UInt8] = []
    ) {
        (self.latest, self.removed, self.signature) = (latest, removed, signature)
    }

    package var text: [UInt8] {
        Array("fcm-gateway audit end 1\nlatest \(self.latest.text)\nremoved \(self.removed.text)\n".utf8)
    }
}

/// The ends of the first writers' chains, rolled into one digest: chains that have ended say nothing new.
package struct AuditSettledEnds: Sendable, Hashable {
    package private(set) var writer = 0
    package private(set) var digest: [UInt8]

    package init() {
        self.digest = SHA256.hash(data: Array("fcm-gateway audit settled 1".utf8)).bytes
    }

    /// Chains of which only the digest is known; without a digest, none.
    package init(writer: Int, digest: [UInt8]?) {
        self.init()
        if let digest { (self.writer, self.digest) = (writer, digest) }
    }

    package mutating func append(_ head: AuditHead) {
        self.writer = head.writer
        self.digest = SHA256.hash(data: self.digest + Array("\(head.text)\n".utf8)).bytes
    }
}

/// The signed word that the oldest records of a chain were removed by retention.
package struct AuditTruncation: Sendable, Hashable {
    package var writer: Int
    /// The place of the last record that was removed.
    package var sequence: Int
    /// The hash of the record at ``sequence``, from which the chain continues.
    package var hash: [UInt8]
    package var time: Timestamp
    package var signature: [UInt8]

    package init(writer: Int, sequence: Int, hash: [UInt8], time: Timestamp, signature: [UInt8]) {
        (self.writer, self.sequence, self.hash) = (writer, sequence, hash)
        (self.time, self.signature) = (time, signature)
    }

    init(_ chain: AuditChain, time: Timestamp, signature: [UInt8]) {
        self.init(writer: chain.writer, sequence: chain.sequence, hash: chain.hash, time: time, signature: signature)
    }

    package var position: AuditChain.Position { AuditChain.Position(writer: self.writer, sequence: self.sequence) }

    package var text: [UInt8] {
        let place = "writer \(self.writer)\nsequence \(self.sequence)\nhash \(Hex.text(self.hash))"
        return Array("fcm-gateway audit truncation 1\n\(place)\ntime \(self.time.microseconds)\n".utf8)
    }

    package var chain: AuditChain {
        AuditChain(writer: self.writer, sequence: self.sequence, hash: self.hash)
    }
}

/// The signed parts of a store's audit, and what they are compared with.
package struct AuditSignatures: Sendable, Hashable {
    /// The checkpoints of the lowest and the highest number.
    package var oldest: SignedCheckpoint?
    package var latest: SignedCheckpoint?
    /// Which checkpoints there should be; `nil` before the gateway's secrets were made.
    package var end: CheckpointEnd?
    /// The beginnings of the chains whose oldest records were removed, by rising writer.
    package var truncations: [AuditTruncation]
    /// True if the store has secrets of the gateway or tenants; these are made after ``end``.
    package var isInUse: Bool
    /// A tenant of whom there is no record, in an audit of which no records were removed by age; `nil` for none.
    package var unrecordedTenant: String?

    package init(
        oldest: SignedCheckpoint? = nil,
        latest: SignedCheckpoint? = nil,
        end: CheckpointEnd? = nil,
        truncations: [AuditTruncation] = [],
        isInUse: Bool = false,
        unrecordedTenant: String? = nil
    ) {
        (self.oldest, self.latest) = (oldest, latest)
        (self.end, self.truncations) = (end, truncations)
        (self.isInUse, self.unrecordedTenant) = (isInUse, unrecordedTenant)
    }

    /// True if no checkpoint was ever made for the store.
    package var isNew: Bool {
        guard self.latest == nil, self.truncations.isEmpty else { return false }
        return self.end.map { $0.latest == .none } ?? !self.isInUse
    }
}
