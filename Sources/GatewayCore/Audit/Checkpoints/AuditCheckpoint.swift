/// What the audit was at one moment: the ends of all its chains, signed and linked to the checkpoints before it.
///
/// Pure: it is text that is signed, and knows nothing of keys or stores.
package struct AuditCheckpoint: Sendable, Hashable {
    /// Every so many checkpoints, one is kept for good; the others go when they are some days old.
    package static let anchorInterval = 360
    /// How many of the latest checkpoints are all kept: two days of activity.
    package static let denseCount = 48 * Self.anchorInterval

    /// The end of one chain at that moment.
    package struct Head: Sendable, Hashable {
        /// Which writer.
        package var writer: Int
        /// The place of the last record.
        package var sequence: Int
        /// The last record's hash.
        package var hash: [UInt8]
        /// How the writer stood.
        package var state: AuditHead.State

        /// The end of a chain.
        package init(_ head: AuditHead) {
            (self.writer, self.sequence, self.hash, self.state) = (head.writer, head.sequence, head.hash, head.state)
        }

        /// The end of a chain by its parts.
        init(writer: Int, sequence: Int, hash: [UInt8], state: AuditHead.State) {
            (self.writer, self.sequence, self.hash, self.state) = (writer, sequence, hash, state)
        }
    }

    /// Where one chain begins after its oldest records were removed.
    package struct Cut: Sendable, Hashable {
        /// Which writer.
        package var writer: Int
        /// The place of the last record that was removed.
        package var sequence: Int
        /// That record's hash.
        package var hash: [UInt8]

        /// A cut by its parts.
        package init(writer: Int, sequence: Int, hash: [UInt8]) {
            (self.writer, self.sequence, self.hash) = (writer, sequence, hash)
        }
    }

    /// Dense from 1.
    package var number: Int
    /// When.
    package var time: Timestamp
    /// The digest of the checkpoint before; zeros in the first.
    package var previous: [UInt8]
    /// The digest of the latest checkpoint before whose number is a multiple of ``anchorInterval``; zeros before that.
    package var anchor: [UInt8]
    /// Checkpoints before this number are not kept.
    package var oldest: Int
    /// From this number on, every checkpoint is kept; before it, multiples of ``anchorInterval`` alone.
    package var denseFrom: Int
    /// The latest checkpoint that the second sink was known to hold; 0 for none.
    package var delivered: Int
    /// The chains of all writers up to this one had ended.
    package var settledWriter: Int
    /// The digest of their ends (``AuditSettledEnds``).
    package var settledDigest: [UInt8]
    /// The chains of all writers up to this one are removed whole, by retention.
    package var removedWriter: Int
    /// The ends of the other chains, by rising writer.
    package var heads: [Head]
    /// Where the other chains begin that do not begin with their first record, by rising writer.
    package var cuts: [Cut]

    /// The number of the latest checkpoint before another one that is kept for good; 0 for none.
    package static func anchorNumber(before number: Int) -> Int {
        (number - 1) / self.anchorInterval * self.anchorInterval
    }

    /// Whether a store that ends with this checkpoint holds the one of a number.
    package func keeps(_ number: Int) -> Bool {
        guard number >= self.oldest, number <= self.number else { return false }
        return number >= self.denseFrom || number.isMultiple(of: Self.anchorInterval)
    }

    /// The first number from another one on that a store that ends with this checkpoint holds, if it goes on for long.
    func firstKept(from number: Int) -> Int {
        let rest = number % Self.anchorInterval
        guard number < self.denseFrom, rest != 0 else { return number }
        return min(number &+ Self.anchorInterval &- rest, self.denseFrom)
    }

    /// Whether another checkpoint says the same of the chains.
    package func says(sameAs other: AuditCheckpoint) -> Bool {
        self.settledWriter == other.settledWriter && self.settledDigest == other.settledDigest
            && self.removedWriter == other.removedWriter && self.heads == other.heads && self.cuts == other.cuts
    }

    /// What a chain's first record says of the checkpoint that it follows.
    package static func openingNote(after number: Int) -> String { "after checkpoint \(number)" }

    /// The number in what a chain's first record says.
    static func number(inOpeningNote text: String?) -> Int? {
        guard let text, text.hasPrefix("after checkpoint "), let number = Int(text.dropFirst(17)) else { return nil }
        return text == self.openingNote(after: number) ? number : nil
    }
}
