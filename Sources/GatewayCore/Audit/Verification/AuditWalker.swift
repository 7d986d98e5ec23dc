import Crypto

/// Walks along one writer's chain, record by record, and stops at the first that is not as it should be.
///
/// Pure: a reader hands it the rows. It hashes the stored bytes as they are, since only what was hashed when it was
/// written can come out with the same hash.
package struct AuditWalker: Sendable {
    /// What is wrong, and where.
    package struct Failure: Sendable, Hashable {
        /// The place.
        package var sequence: Int
        /// What is wrong with it, in words for an operator.
        package var reason: String
    }

    /// The chain so far.
    package private(set) var chain: AuditChain
    /// The end that the chain must have; a live writer's moves on meanwhile.
    package private(set) var head: AuditHead
    /// The first thing that is wrong.
    package private(set) var failure: Failure?
    /// What the chain's first record says of itself, if it was met.
    package private(set) var openingNote: String?
    /// Where the chain begins by now, if records that were still to come were removed during the walk.
    package private(set) var cut: AuditCut?
    /// Whether the walk goes on behind records that are removed meanwhile.
    package let followsCuts: Bool
    /// Whether rows before the chain's beginning have been looked for.
    private var hasBegun = false
    private let mayGrow: Bool
    private let landmarks: [AuditLandmark]
    private var nextLandmark = 0
    private var header: [UInt8] = []
    private var link: [UInt8] = []

    /// A walk that goes on from a place of a chain.
    ///
    /// - Parameters:
    ///   - chain: what precedes the first record that is met.
    ///   - head: the end that is stored for the chain.
    ///   - mayGrow: whether the head may move on meanwhile.
    ///   - followsCuts: whether the beginning may move on meanwhile; whoever lets it asks ``cut`` for its signature.
    ///   - landmarks: what is known of the chain, by rising place; none before the beginning.
    package init(
        from chain: AuditChain,
        to head: AuditHead,
        mayGrow: Bool,
        followsCuts: Bool = false,
        landmarks: [AuditLandmark] = []
    ) {
        self.chain = chain
        self.head = head
        self.mayGrow = mayGrow
        self.followsCuts = followsCuts
        self.landmarks = landmarks
    }

    /// The place from which on rows are to be read next.
    ///
    /// At first these are all rows of the writer: none may stand before the beginning.
    package var nextSequence: Int { self.hasBegun ? self.chain.sequence + 1 : Int.min }

    /// Begins a page of rows.
    ///
    /// - Parameters:
    ///   - head: the head that was read together with the rows, if the store has one.
    ///   - cut: the chain's cut that was read together with them, if there is one.
    package mutating func beginPage(head: AuditHead?, cut: AuditCut?) {
        if let head, self.mayGrow, head.sequence >= self.head.sequence { self.head = head }
        if let cut, self.followsCuts, cut.sequence > self.chain.sequence { self.move(to: cut) }
    }

    /// Goes on behind a cut.
    private mutating func move(to cut: AuditCut) {
        // A number that somebody else stored must not overflow.
        guard cut.sequence < Int.max else {
            return self.stop("more records are said to be removed than there were")
        }
        self.chain = AuditChain(writer: self.chain.writer, sequence: cut.sequence, hash: cut.hash)
        self.cut = cut
        while self.nextLandmark < self.landmarks.count, self.landmarks[self.nextLandmark].sequence <= cut.sequence {
            let landmark = self.landmarks[self.nextLandmark]
            if landmark.sequence == cut.sequence, landmark.hash != cut.hash {
                _ = self.fail(cut.sequence, "\(landmark.source) has another record in its place")
                return
            }
            self.nextLandmark += 1
        }
    }

    /// Takes the next row.
    ///
    /// - Returns: whether the walk goes on.
    package mutating func step(_ row: AuditRow) -> Bool {
        guard self.failure == nil else { return false }
        self.hasBegun = true
        let expected = self.chain.sequence + 1
        guard row.sequence == expected else {
            return row.sequence < expected
                ? self.fail(row.sequence, "the record is older than the chain's beginning")
                : self.fail(expected, "the record is missing")
        }
        guard expected <= self.head.sequence else {
            return self.fail(expected, "the record was never written by the gateway")
        }
        guard row.isReadable, self.advance(row) else { return self.fail(expected, "the record was changed") }
        if expected == self.head.sequence, row.hash != self.head.hash {
            return self.fail(expected, "the chain's end is not the recorded one")
        }
        while self.nextLandmark < self.landmarks.count, self.landmarks[self.nextLandmark].sequence == expected {
            let landmark = self.landmarks[self.nextLandmark]
            guard landmark.hash == row.hash else {
                return self.fail(expected, "\(landmark.source) has another record in its place")
            }
            self.nextLandmark += 1
        }
        if expected == 1 {
            self.openingNote = AuditBody.decode(row.body, time: Timestamp(microseconds: row.time), tenant: nil)?.object
        }
        return true
    }

    /// Ends the walk because the next row can't be read.
    package mutating func stop(_ reason: String) {
        if self.failure == nil { _ = self.fail(self.chain.sequence &+ 1, reason) }
    }

    /// Ends the walk: what has not come by now is missing.
    package mutating func finish() {
        guard self.failure == nil else { return }
        if self.chain.sequence < self.head.sequence {
            _ = self.fail(self.chain.sequence + 1, "the record is missing")
        } else if self.nextLandmark < self.landmarks.count {
            let source = self.landmarks[self.nextLandmark].source
            _ = self.fail(self.chain.sequence + 1, "the record is missing, \(source) has it")
        }
    }

    /// Whether the row is the chain's next.
    private mutating func advance(_ row: AuditRow) -> Bool {
        self.header.removeAll(keepingCapacity: true)
        AuditBody.encodeHeader(of: row, writer: self.chain.writer, to: &self.header)
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

    private mutating func fail(_ sequence: Int, _ reason: String) -> Bool {
        self.failure = Failure(sequence: sequence, reason: reason)
        return false
    }
}
