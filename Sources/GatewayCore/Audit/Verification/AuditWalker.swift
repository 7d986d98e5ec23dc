import Crypto

/// The hash that a record in some place of a chain must have, by the word of a checkpoint.
package struct AuditKnownHash: Sendable, Hashable {
    /// Who says so; in words for an operator when it is printed.
    package enum Source: Sendable, Hashable, CustomStringConvertible {
        /// A checkpoint, by its number.
        case checkpoint(Int)
        case sink

        package var description: String {
            switch self {
            case .checkpoint(let number): "checkpoint \(number)"
            case .sink: "the sink"
            }
        }
    }

    package var sequence: Int
    package var hash: [UInt8]
    package var source: Source

    package init(sequence: Int, hash: [UInt8], source: Source) {
        (self.sequence, self.hash, self.source) = (sequence, hash, source)
    }
}

/// Records of which no more can be seen than the hashes of what they say.
package struct HiddenAuditRecords: Sendable, Hashable {
    /// The most in one line, so that a changed one is found to within so many.
    package static let maxCount = 64

    package var writer: Int
    /// The first one's place.
    package var sequence: Int
    /// SHA-256 of what each says in its place.
    package var digests: [[UInt8]]
    /// The chain's hash behind the last.
    package var hash: [UInt8]

    package init(writer: Int, sequence: Int, digests: [[UInt8]], hash: [UInt8]) {
        (self.writer, self.sequence, self.digests, self.hash) = (writer, sequence, digests, hash)
    }
}

/// Follows one writer's chain, record by record, and stops at the first that is not as it should be.
///
/// Pure: a store, an export or a sink hands it the rows. It hashes the stored bytes as they are, since only what was hashed
/// when it was written can come out with the same hash.
package struct AuditWalker: Sendable {
    /// What is wrong, and in which place.
    package struct Failure: Error, Sendable, Hashable {
        package var sequence: Int
        /// In words for an operator.
        package var reason: String
    }

    package private(set) var chain: AuditChain
    /// The end that the chain must have, where one is known; a live writer's moves on meanwhile.
    package private(set) var head: AuditHead?
    /// The place at which the walk has to end, if not at the head.
    package let through: Int?
    package private(set) var failure: Failure?
    /// What the chain's first record says of itself, if it was met.
    package private(set) var openingNote: String?
    /// Where the chain begins by now, if records that were still to come were removed during the walk.
    package private(set) var truncation: AuditTruncation?
    /// Whether the walk goes on behind records that are removed meanwhile.
    package let followsTruncations: Bool
    /// Whether rows before the chain's beginning have been looked for.
    private var hasBegun = false
    private let mayGrow: Bool
    private let known: [AuditKnownHash]
    private var nextKnown = 0
    private var header: [UInt8] = []
    private var link: [UInt8] = []

    /// A walk that goes on from a place of a chain.
    ///
    /// - Parameters:
    ///   - chain: what precedes the first record that is met.
    ///   - head: the end that is stored for the chain; `nil` where there is none to compare with.
    ///   - through: the place at which the walk has to end; `nil` for the head.
    ///   - mayGrow: whether the head may move on meanwhile.
    ///   - followsTruncations: whether the beginning may move on meanwhile; ``truncation`` has to be checked then.
    ///   - known: what is known of the chain, by rising place; none before the beginning.
    package init(
        from chain: AuditChain,
        to head: AuditHead? = nil,
        through: Int? = nil,
        mayGrow: Bool = false,
        followsTruncations: Bool = false,
        known: [AuditKnownHash] = []
    ) {
        self.chain = chain
        self.head = head
        self.through = through
        self.mayGrow = mayGrow
        self.followsTruncations = followsTruncations
        self.known = known
    }

    /// The place from which on rows are to be read next.
    ///
    /// At first these are all rows of the writer: none may stand before the beginning.
    package var nextSequence: Int { self.hasBegun ? self.chain.sequence + 1 : Int.min }

    /// Begins a page of rows, with the head and the truncation that were read together with them.
    package mutating func beginPage(head: AuditHead?, truncation: AuditTruncation?) {
        if let head, let known = self.head, self.mayGrow, head.sequence >= known.sequence { self.head = head }
        guard let truncation, self.followsTruncations, truncation.sequence > self.chain.sequence else { return }
        self.move(to: truncation)
    }

    /// Goes on behind records that were removed.
    private mutating func move(to truncation: AuditTruncation) {
        // A number that somebody else stored must not overflow.
        guard truncation.sequence < Int.max else {
            return self.stop("more records are said to be removed than there were")
        }
        self.chain = truncation.chain
        self.truncation = truncation
        while self.nextKnown < self.known.count, self.known[self.nextKnown].sequence <= truncation.sequence {
            let known = self.known[self.nextKnown]
            if known.sequence == truncation.sequence, known.hash != truncation.hash {
                return self.fail(truncation.sequence, "\(known.source) has another record in its place")
            }
            self.nextKnown += 1
        }
    }

    /// Takes the next row.
    ///
    /// - Returns: whether the walk goes on.
    @discardableResult
    package mutating func step(_ row: AuditRow) -> Bool {
        guard self.expect(row.sequence) else { return false }
        let expected = self.chain.sequence + 1
        guard row.isReadable, self.advance(row) else {
            self.fail(expected, "the record was changed")
            return false
        }
        if expected == 1 {
            self.openingNote = AuditCodec.decode(row.body, time: Timestamp(microseconds: row.time), tenant: nil)?.object
        }
        return self.compare()
    }

    /// Takes the next records, of which no more than their digests are known.
    ///
    /// - Returns: whether the walk goes on.
    @discardableResult
    package mutating func step(_ records: HiddenAuditRecords) -> Bool {
        var end = self.chain
        for digest in records.digests { end.append(digest: digest) }
        let isGenuine = end.hash == records.hash && !records.digests.isEmpty
        for (index, digest) in records.digests.enumerated() {
            guard self.expect(records.sequence &+ index) else { return false }
            guard isGenuine else { break }
            self.chain.append(digest: digest)
            guard self.compare() else { return false }
        }
        guard isGenuine else {
            self.fail(records.sequence, "this record, or one of those behind it that are hidden, was changed")
            return false
        }
        return true
    }

    /// Whether a record may be the next.
    private mutating func expect(_ sequence: Int) -> Bool {
        guard self.failure == nil else { return false }
        let isFirst = !self.hasBegun
        self.hasBegun = true
        let expected = self.chain.sequence &+ 1
        if sequence == expected, expected > 0, expected <= self.head?.sequence ?? Int.max { return true }
        if sequence < expected {
            let reason = isFirst ? "the record is older than the chain's beginning" : "the record is out of place"
            self.fail(sequence, reason)
        } else if sequence > expected {
            self.fail(expected, "the record is missing")
        } else {
            self.fail(expected, "the record was never written by the gateway")
        }
        return false
    }

    /// Compares the chain's end with what is known of its place.
    private mutating func compare() -> Bool {
        let place = self.chain.sequence
        if place == self.head?.sequence, self.chain.hash != self.head?.hash {
            self.fail(place, "the chain's end is not the recorded one")
            return false
        }
        while self.nextKnown < self.known.count, self.known[self.nextKnown].sequence == place {
            let known = self.known[self.nextKnown]
            guard known.hash == self.chain.hash else {
                self.fail(place, "\(known.source) has another record in its place")
                return false
            }
            self.nextKnown += 1
        }
        return true
    }

    /// Ends the walk because the next row can't be read.
    package mutating func stop(_ reason: String) {
        if self.failure == nil { self.fail(self.chain.sequence &+ 1, reason) }
    }

    /// Ends the walk: what has not come by now is missing.
    package mutating func finish() {
        guard self.failure == nil else { return }
        let last = self.through ?? self.head?.sequence ?? self.chain.sequence
        if self.chain.sequence < last {
            self.fail(self.chain.sequence + 1, "the record is missing")
        } else if self.through == nil, self.nextKnown < self.known.count {
            let source = self.known[self.nextKnown].source
            self.fail(self.chain.sequence + 1, "the record is missing, \(source) has it")
        } else if let through = self.through, self.chain.sequence > through {
            self.fail(through + 1, "the record is out of place")
        }
    }

    /// Whether the row is the chain's next.
    private mutating func advance(_ row: AuditRow) -> Bool {
        self.header.removeAll(keepingCapacity: true)
        AuditCodec.encodeHeader(of: row, writer: self.chain.writer, to: &self.header)
        var leaf = SHA256()
        leaf.update(data: self.header)
        leaf.update(data: row.body)
        self.link.removeAll(keepingCapacity: true)
        self.link.append(contentsOf: self.chain.hash)
        // The pointers do not outlive the closures.
        unsafe leaf.finalize().withUnsafeBytes { unsafe self.link.append(contentsOf: $0) }
        let digest = SHA256.hash(data: self.link)
        guard row.hash.count == SHA256.byteCount, unsafe digest.withUnsafeBytes({ unsafe $0.elementsEqual(row.hash) })
        else { return false }
        self.chain.advance(to: row.hash)
        return true
    }

    private mutating func fail(_ sequence: Int, _ reason: String) {
        self.failure = Failure(sequence: sequence, reason: reason)
    }
}
