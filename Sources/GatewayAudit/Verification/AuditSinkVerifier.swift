package import NIOCore

/// Checks a second sink by itself, line by line, and learns from it what a store must hold.
///
/// Pure. Records stand in the order of their delivery, and each checkpoint behind what it covers. Delivery is at least
/// once: after a failure it goes back to a checkpoint that the sink has, or to the beginning where there is none, and
/// all behind that comes again and is checked again. A line that can't be read is one that was broken off only if the
/// next line goes back.
package struct AuditSinkVerifier: Sendable {
    /// The first problem, and its place.
    package struct Failure: Error, Equatable {
        package var file: String
        /// The line, from 1.
        package var line: Int
        /// The record, where it is one.
        package var place: AuditChain.Position?
        package var reason: String

        package init(file: String, line: Int, place: AuditChain.Position? = nil, reason: String) {
            (self.file, self.line, self.place, self.reason) = (file, line, place, reason)
        }
    }

    private let publicKey: AuditPublicKey?
    private var chains = Chains()
    /// The first record or truncation marker, which comes again where a sink begins anew before its first checkpoint.
    private var first: AuditChain.Position?
    private var last: (content: AuditCheckpoint, digest: [UInt8])?
    /// A line that can't be read, behind which the sink has not gone back yet.
    private var torn: Failure?
    /// True if that is the last line and has no end.
    private var isTornAtEnd = false
    private var line = (file: "", number: 0)

    /// The number of records; duplicates count twice.
    package private(set) var records = 0
    package private(set) var evidence = AuditEvidence()
    /// The name of the sink, as the latest checkpoint says; `nil` without one.
    package private(set) var name: String?

    package init(publicKey: AuditPublicKey?) {
        self.publicKey = publicKey
    }

    package var finding: Failure? { self.isTornAtEnd ? nil : self.torn }

    /// A last line without an end: it is being written, or was broken off.
    package var warning: Failure? { self.isTornAtEnd ? self.torn : nil }

    package mutating func begin(_ file: String) {
        self.line = (file, 0)
    }

    package mutating func take(_ text: ByteBuffer) throws(Failure) {
        self.line.number += 1
        self.isTornAtEnd = false
        switch AuditLine(text) {
        case .record(let record)?: try self.take(record)
        case .truncation(let truncation, let ended)?: try self.take(truncation, ended: ended)
        case .checkpoint(let checkpoint, let sink)?:
            try self.take(checkpoint)
            self.name = sink
        case nil:
            try self.requireNothingTorn()
            self.torn = self.failure(text.readableBytes == 0 ? "the line is empty" : "the line was changed")
        }
    }

    /// Ends a file whose last line has no end.
    package mutating func endTorn() throws(Failure) {
        self.line.number += 1
        try self.requireNothingTorn()
        (self.torn, self.isTornAtEnd) = (self.failure("the last line is not whole"), true)
    }

    private func requireNothingTorn() throws(Failure) {
        if let torn = self.torn { throw torn }
    }

    private func failure(_ reason: String, _ place: AuditChain.Position? = nil) -> Failure {
        Failure(file: self.line.file, line: self.line.number, place: place, reason: reason)
    }

    private func failure(_ verdict: AuditVerifier.Verdict) -> Failure {
        switch verdict {
        case .tampered(let place, let reason): self.failure(reason, place)
        case .checkpointTampered(let number, let reason): self.failure("checkpoint \(number): \(reason)")
        case .intact, .unclean: self.failure("\(verdict)")
        }
    }

    /// Begins anew where the sink does.
    private mutating func begin(at place: AuditChain.Position) {
        guard self.last == nil else { return }
        if self.first == place { self.goBack(to: Chains()) }
        self.first = self.first ?? place
    }

    private mutating func goBack(to chains: Chains) {
        (self.chains, self.torn) = (chains, nil)
    }

    private mutating func take(_ record: ChainedAuditRecord) throws(Failure) {
        self.begin(at: record.position)
        try self.requireNothingTorn()
        if let failure = self.chains.take(record) { throw self.failure(failure) }
        self.records += 1
    }

    private mutating func take(_ truncation: AuditTruncation, ended: AuditHead.State?) throws(Failure) {
        let place = truncation.position
        self.begin(at: place)
        try self.requireNothingTorn()
        if let publicKey = self.publicKey, !publicKey.isGenuine(truncation.signature, of: truncation.text) {
            throw self.failure(AuditVerification.forgedTruncation, place)
        }
        guard self.chains.take(truncation, ended: ended) else {
            throw self.failure("the word that older records were removed is out of place", place)
        }
    }

    // MARK: Checkpoints

    private mutating func take(_ signed: SignedCheckpoint) throws(Failure) {
        let content: AuditCheckpoint
        do throws(AuditVerifier.Verdict) {
            content = try AuditVerification.content(of: signed, self.publicKey)
        } catch {
            throw self.failure(error)
        }
        let digest = signed.digest
        if self.evidence.digests[content.number] == digest {
            self.last = (content, digest)
            return self.goBack(to: Chains(content))
        }
        try self.requireNothingTorn()
        if let last = self.last { try self.checkOrder(content, after: last) }
        if self.last != nil || !self.chains.isEmpty { try self.checkEnds(content, since: self.last?.content) }
        self.chains.take(content)
        self.last = (content, digest)
        self.evidence.add(content, digest: digest)
    }

    private func checkOrder(
        _ content: AuditCheckpoint,
        after last: (content: AuditCheckpoint, digest: [UInt8])
    ) throws(Failure) {
        let number = content.number
        if self.evidence.digests[number] != nil {
            throw self.failure("checkpoint \(number) is another one than before")
        }
        guard number == last.content.number &+ 1 else {
            throw self.failure("checkpoint \(last.content.number &+ 1) is missing")
        }
        guard content.previous == last.digest else {
            throw self.failure("the checkpoint does not follow the one before it")
        }
    }

    /// Checks that the chains have reached the ends that a checkpoint has for them.
    private func checkEnds(_ content: AuditCheckpoint, since last: AuditCheckpoint?) throws(Failure) {
        for head in content.heads where !self.chains.agrees(with: head) {
            let end = self.chains.end(of: head.writer)
            let sequence = min(end.sequence, head.sequence) + (end.sequence < head.sequence ? 1 : 0)
            throw self.failure(
                "checkpoint \(content.number) has another end of the chain",
                AuditChain.Position(writer: head.writer, sequence: max(sequence, 1))
            )
        }
        let known = Set(content.heads.map(\.writer))
        if let writer = self.chains.writers.first(where: { $0 > content.settledWriter && !known.contains($0) }) {
            throw self.failure(
                "checkpoint \(content.number) does not know the chain",
                AuditChain.Position(writer: writer, sequence: self.chains.end(of: writer).sequence)
            )
        }
        var ends = AuditSettledEnds(writer: last?.settledWriter ?? 0, digest: last?.settledDigest)
        guard content.settledWriter - ends.writer <= self.chains.writers.count else {
            throw self.failure("checkpoint \(content.number) has chains that are missing")
        }
        while ends.writer < content.settledWriter { ends.append(self.chains.settledHead(of: ends.writer + 1)) }
        guard ends.digest == content.settledDigest, ends.writer == content.settledWriter else {
            throw self.failure("checkpoint \(content.number) has other ends of the chains that have ended")
        }
    }
}

// MARK: Chains

extension AuditSinkVerifier {
    /// The ends of the chains in a sink.
    private struct Chains: Sendable {
        private var walkers: [Int: AuditWalker] = [:]
        /// The last state of each chain that ended with its last place.
        private var states: [Int: AuditHead.State] = [:]
        /// The chains whose last place is a truncation marker's: what preceded it, the sink may never have had.
        private var truncated: Set<Int> = []

        /// The chains as a checkpoint has them; without one, none.
        init(_ checkpoint: AuditCheckpoint? = nil) {
            if let checkpoint { self.take(checkpoint) }
        }

        var isEmpty: Bool { self.walkers.isEmpty }

        var writers: [Int] { self.walkers.keys.sorted() }

        /// The chain that a writer's next record follows.
        func end(of writer: Int) -> AuditChain { self.walkers[writer]?.chain ?? AuditChain(writer: writer) }

        /// Takes the next record, and returns its problem or `nil`.
        mutating func take(_ record: ChainedAuditRecord) -> AuditVerifier.Verdict? {
            let writer = record.writer
            self.walkers[writer, default: AuditWalker(from: AuditChain(writer: writer))].step(record)
            let isRecovery = record.record.action == AuditRecord.Action.auditRecovered.rawValue
            self.states[writer] = isRecovery ? .recovered : .closed
            self.truncated.remove(writer)
            return self.walkers[writer]?.failure
        }

        /// Takes a truncation marker, and returns true if it lies at or behind the chain's end, or is known already.
        mutating func take(_ truncation: AuditTruncation, ended: AuditHead.State?) -> Bool {
            let end = self.end(of: truncation.writer)
            // While checkpoints lie below it, it comes before each of them.
            guard truncation.sequence > end.sequence || truncation.chain == end else { return false }
            if truncation.sequence > end.sequence { self.truncated.insert(truncation.writer) }
            self.walkers[truncation.writer] = AuditWalker(from: truncation.chain)
            self.states[truncation.writer] = ended ?? self.states[truncation.writer]
            return true
        }

        /// Takes over the ends that a checkpoint has.
        mutating func take(_ checkpoint: AuditCheckpoint) {
            for head in checkpoint.heads where !self.isTruncated(above: head) {
                self.walkers[head.writer] = AuditWalker(from: head.chain)
                self.states[head.writer] = head.state == .open ? self.states[head.writer] : head.state
                self.truncated.remove(head.writer)
            }
        }

        /// True if a chain has reached the end that a checkpoint has for it.
        func agrees(with head: AuditHead) -> Bool {
            self.end(of: head.writer) == head.chain || self.isTruncated(above: head)
        }

        func settledHead(of writer: Int) -> AuditHead {
            AuditHead(self.end(of: writer), state: self.states[writer] ?? .closed)
        }

        /// True if the records around a place were removed before the sink could get them.
        private func isTruncated(above head: AuditHead) -> Bool {
            self.truncated.contains(head.writer) && head.state == .open
                && self.end(of: head.writer).sequence > head.sequence
        }
    }
}

// MARK: Evidence

/// The parts of a second sink that a store can be compared with.
package struct AuditEvidence: Sendable {
    package private(set) var digests: [Int: [UInt8]] = [:]
    /// The hashes at places of chains, by writer and rising place.
    package private(set) var known: [Int: [AuditKnownHash]] = [:]
    package private(set) var latest = 0
    /// The checkpoint that the sink was known to hold when it began to be read; 0 for none.
    package var required = 0

    package init() {}

    mutating func add(_ checkpoint: AuditCheckpoint, digest: [UInt8]) {
        let number = checkpoint.number
        self.latest = max(self.latest, number)
        self.digests[number] = digest
        for head in checkpoint.heads {
            let known = AuditKnownHash(sequence: head.sequence, hash: head.hash, checkpoint: number, isInSink: true)
            self.known[head.writer, default: []].appendUnlessLast(known)
        }
    }
}
