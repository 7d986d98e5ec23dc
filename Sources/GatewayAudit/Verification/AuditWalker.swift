import Crypto

/// The hash that a record in some place of a chain must have, by the word of a checkpoint.
package struct AuditKnownHash: Sendable, Hashable {
    package var sequence: Int
    package var hash: [UInt8]
    /// The checkpoint that says so; of several, the first.
    var checkpoint: Int
    var isInSink = false

    /// The source of the hash, in words for an operator.
    var source: String { self.isInSink ? "the sink" : "checkpoint \(self.checkpoint)" }
}

/// Follows one writer's chain, record by record, and stops at the first that is not as it should be.
///
/// Pure: a store or a sink hands it the records. It hashes the stored bytes as they are, since only what was
/// hashed when it was written can come out with the same hash.
struct AuditWalker: Sendable {
    private(set) var chain: AuditChain
    /// The end that the chain must have, where one is known; a live writer's moves on meanwhile.
    private(set) var head: AuditHead?
    private(set) var failure: AuditVerifier.Verdict?
    /// The chain's first record, if it was met.
    private(set) var opening: AuditRecord?
    /// True if the chain ends with a record by which a leader closed it for its replica.
    private(set) var isClosedByLeader = false
    /// The chain's new beginning, if records ahead were removed during the walk.
    private(set) var truncation: AuditTruncation?
    /// True if the walk continues behind records that are removed meanwhile; ``truncation`` has to be checked then.
    private let followsTruncations: Bool
    /// True if rows before the chain's beginning have been looked for.
    private var hasBegun = false
    private let mayGrow: Bool
    private let known: [AuditKnownHash]
    private var nextKnown = 0
    private var header: [UInt8] = []
    private var link: [UInt8] = []

    /// A walk that begins at a place of a chain.
    ///
    /// The head is the chain's stored end, if there is one to compare with; the chain may be longer by now if it may
    /// grow. The known hashes are sorted by rising place, none before the beginning.
    init(
        from chain: AuditChain,
        to head: AuditHead? = nil,
        mayGrow: Bool = false,
        followsTruncations: Bool = false,
        known: [AuditKnownHash] = []
    ) {
        (self.chain, self.head) = (chain, head)
        (self.mayGrow, self.followsTruncations, self.known) = (mayGrow, followsTruncations, known)
    }

    /// The place from which on rows are to be read next.
    ///
    /// At first these are all rows of the writer: none may stand before the beginning.
    var nextSequence: Int { self.hasBegun ? self.chain.sequence + 1 : Int.min }

    /// Begins a page of rows, with the head and the truncation that were read together with them.
    mutating func beginPage(head: AuditHead?, truncation: AuditTruncation?) {
        if let head, let known = self.head, self.mayGrow, head.sequence >= known.sequence { self.head = head }
        guard let truncation, self.followsTruncations, truncation.sequence > self.chain.sequence else { return }
        // A number that somebody else stored must not overflow.
        guard truncation.sequence < Int.max else {
            return self.stop(AuditVerification.excessiveTruncation)
        }
        (self.chain, self.truncation) = (truncation.chain, truncation)
        while self.nextKnown < self.known.count, self.known[self.nextKnown].sequence < truncation.sequence {
            self.nextKnown += 1
        }
        _ = self.compareWithKnown()
    }

    /// Takes the next record; returns true if the walk continues.
    @discardableResult
    mutating func step(_ record: ChainedAuditRecord) -> Bool {
        guard self.expect(record.sequence) else { return false }
        let expected = self.chain.sequence + 1
        guard self.advance(record) else { return self.fail(expected, "the record was changed") }
        if expected == 1 { self.opening = record.record }
        if let head = self.head, expected == head.sequence, head.state == .recovered {
            self.isClosedByLeader = record.record.isClosedByLeader
        }
        return self.compare()
    }

    private mutating func expect(_ sequence: Int) -> Bool {
        guard self.failure == nil else { return false }
        let isFirst = !self.hasBegun
        self.hasBegun = true
        let expected = self.chain.sequence &+ 1
        if sequence == expected, expected > 0, expected <= self.head?.sequence ?? Int.max { return true }
        if sequence < expected {
            let reason = isFirst ? "the record is older than the chain's beginning" : "the record is out of place"
            return self.fail(sequence, reason)
        }
        let isGap = sequence > expected
        return self.fail(expected, isGap ? "the record is missing" : "the record was never written by the gateway")
    }

    private mutating func compare() -> Bool {
        let place = self.chain.sequence
        if place == self.head?.sequence, self.chain.hash != self.head?.hash {
            return self.fail(place, "the chain's end is not the recorded one")
        }
        return self.compareWithKnown()
    }

    private mutating func compareWithKnown() -> Bool {
        while self.nextKnown < self.known.count, self.known[self.nextKnown].sequence == self.chain.sequence {
            let known = self.known[self.nextKnown]
            guard known.hash == self.chain.hash else {
                return self.fail(known.sequence, "\(known.source) has another record in its place")
            }
            self.nextKnown += 1
        }
        return true
    }

    /// Ends the walk because the next row can't be read.
    mutating func stop(_ reason: String) {
        if self.failure == nil { self.fail(self.chain.sequence &+ 1, reason) }
    }

    /// Ends the walk: records that have not arrived are missing.
    mutating func finish() {
        guard self.failure == nil else { return }
        let last = self.head?.sequence ?? self.chain.sequence
        if self.chain.sequence < last {
            self.fail(self.chain.sequence + 1, "the record is missing")
        } else if self.nextKnown < self.known.count {
            let source = self.known[self.nextKnown].source
            self.fail(self.chain.sequence + 1, "the record is missing, \(source) has it")
        }
    }

    private mutating func advance(_ record: ChainedAuditRecord) -> Bool {
        self.header.removeAll(keepingCapacity: true)
        let (writer, sequence) = (self.chain.writer, record.sequence)
        AuditCodec.encodeHeader(of: record.entry, writer: writer, sequence: sequence, to: &self.header)
        var leaf = SHA256()
        leaf.update(data: self.header)
        leaf.update(data: record.entry.body)
        self.link.removeAll(keepingCapacity: true)
        self.link.append(contentsOf: self.chain.hash)
        // The pointers do not outlive the closures.
        unsafe leaf.finalize().withUnsafeBytes { unsafe self.link.append(contentsOf: $0) }
        let digest = SHA256.hash(data: self.link)
        guard record.hash.count == SHA256.byteCount,
            unsafe digest.withUnsafeBytes({ unsafe $0.elementsEqual(record.hash) })
        else { return false }
        self.chain.advance(to: record.hash)
        return true
    }

    /// Ends the walk, and returns false.
    @discardableResult
    private mutating func fail(_ sequence: Int, _ reason: String) -> Bool {
        self.failure = .tampered(AuditChain.Position(writer: self.chain.writer, sequence: sequence), reason: reason)
        return false
    }
}
