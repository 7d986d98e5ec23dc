/// Checks what is signed of an audit by itself and against the ends of its chains, and draws from it what their records
/// must be like.
///
/// Pure. It is made of a store's signatures and ends, then takes the checkpoints by rising number and keeps of each
/// only what it says of places. A checkpoint that is not what was signed is noted and asked no further, so that what it
/// says of a chain is never held against the chain.
struct AuditVerification: Sendable {
    typealias Verdict = AuditVerifier.Verdict

    /// The reason if the gateway did not sign a truncation marker.
    static let forgedTruncation = "the word that older records were removed is not genuine"
    /// The reason if a truncation marker lies behind the chain's end.
    static let excessiveTruncation = "more records are said to be removed than there were"

    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?
    private let evidence: AuditEvidence
    private let heads: [Int: AuditHead]
    /// The digest of the ends of the first writers' chains, by how many.
    private let settledDigests: [[UInt8]]
    /// The first problem of the signed parts or the ends; a walk along the chains may not find it.
    private(set) var finding: Verdict?
    /// The latest checkpoint that is genuine.
    private var latest: AuditCheckpoint?
    /// The number of the checkpoint that comes next.
    private var next: Int
    /// The digest of the one before; `nil` where it is not known.
    private var previous: [UInt8]?
    /// The beginnings of chains, by writer; one that is not genuine is reported and still followed.
    private(set) var truncations: [Int: AuditTruncation] = [:]
    private var badTruncations: [Int: String] = [:]
    private var known: [Int: [AuditKnownHash]]

    /// Compares a store with a second sink's evidence; the ends were read after the signatures.
    ///
    /// Without a sealer or a public key, seals or signatures are not checked.
    init(
        _ signatures: AuditSignatures,
        _ heads: [AuditHead],
        sealer: AuditSealer?,
        publicKey: AuditPublicKey?,
        evidence: AuditEvidence = AuditEvidence()
    ) {
        (self.sealer, self.publicKey, self.evidence) = (sealer, publicKey, evidence)
        self.heads = heads.keyed(by: \.writer)
        var ends = AuditSettledEnds()
        var digests = [ends.digest]
        for head in heads where head.writer == digests.count {
            ends.append(head)
            digests.append(ends.digest)
        }
        self.settledDigests = digests
        self.known = evidence.known
        self.next = signatures.oldest?.number ?? 1
        if let end = signatures.end {
            self.next = end.removed.number &+ 1
            self.previous = end.removed.digest
        }
        for truncation in signatures.truncations {
            self.truncations[truncation.writer] = truncation
            if !self.isGenuine(truncation) { self.badTruncations[truncation.writer] = Self.forgedTruncation }
        }
        self.checkEnd(signatures)
    }

    // MARK: Signed parts

    private mutating func report(_ number: Int, _ reason: String) {
        if self.finding == nil { self.finding = .checkpointTampered(number: number, reason: reason) }
    }

    private mutating func report(_ writer: Int, _ sequence: Int, _ reason: String) {
        if self.finding == nil { self.finding = Self.tampered(writer, sequence, reason) }
    }

    private static func tampered(_ writer: Int, _ sequence: Int, _ reason: String) -> Verdict {
        .tampered(AuditChain.Position(writer: writer, sequence: sequence), reason: reason)
    }

    /// Returns a checkpoint's content if the gateway signed it.
    static func content(of signed: SignedCheckpoint, _ publicKey: AuditPublicKey?) throws(Verdict) -> AuditCheckpoint {
        guard let content = signed.content, content.number == signed.number else {
            throw .checkpointTampered(number: signed.number, reason: "it was changed")
        }
        if let publicKey, !publicKey.isGenuine(signed.signature, of: signed.text) {
            throw .checkpointTampered(number: signed.number, reason: "its signature is not genuine")
        }
        return content
    }

    func isGenuine(_ truncation: AuditTruncation) -> Bool {
        self.publicKey?.isGenuine(truncation.signature, of: truncation.text) != false
    }

    private func isGenuine(_ end: CheckpointEnd) -> Bool {
        self.publicKey?.isGenuine(end.signature, of: end.text) != false
    }

    /// Compares the latest checkpoint with the signed word of which that is.
    private mutating func checkEnd(_ signatures: AuditSignatures) {
        guard let end = signatures.end else {
            if let oldest = signatures.oldest {
                return self.report(oldest.number, "the end of the row is missing")
            }
            // A gateway removes nothing before it has made a checkpoint.
            if !signatures.truncations.isEmpty {
                self.report(1, "it and all others are missing, though records were removed")
            }
            if signatures.isInUse { self.report(1, "it and all others are missing, with the word of the latest") }
            return
        }
        let last = end.latest.number
        guard self.isGenuine(end) else { return self.report(last, "the end of the row is not genuine") }
        guard let latest = signatures.latest else {
            if !signatures.isNew { self.report(max(1, last), "it is missing") }
            return
        }
        if latest.number < last { self.report(latest.number &+ 1, "it is missing") }
        if latest.number > last { self.report(latest.number, "it is behind the end of the row") }
        if latest.digest != end.latest.digest { self.report(last, "it is not the one that was signed") }
    }

    /// Returns true if checkpoints are missing before one that comes next.
    func misses(before number: Int) -> Bool { number > self.next }

    /// Continues behind the checkpoints that were removed by age since the signatures were read.
    mutating func follow(_ end: CheckpointEnd) {
        guard end.removed.number >= self.next, self.isGenuine(end) else { return }
        self.skip(to: end.removed.number &+ 1)
        self.previous = end.removed.digest
    }

    /// Leaves out checkpoints that are not looked at.
    mutating func skip(to number: Int) {
        (self.next, self.previous) = (number, nil)
    }

    /// Takes the next checkpoint: its signature, its link to the one before, and what it says of the chains.
    mutating func take(_ signed: SignedCheckpoint) {
        guard signed.number >= self.next else { return self.report(signed.number, "it should not be there") }
        if signed.number > self.next {
            self.report(self.next, "it is missing")
            self.previous = nil
        }
        let previous = self.previous
        (self.next, self.previous) = (signed.number &+ 1, signed.digest)
        let content: AuditCheckpoint
        do throws(Verdict) {
            content = try Self.content(of: signed, self.publicKey)
        } catch {
            self.finding = self.finding ?? error
            return
        }
        if let previous, content.previous != previous {
            self.report(signed.number &- 1, "it is not the one that checkpoint \(signed.number) follows")
        }
        if let digest = self.evidence.digests[signed.number], digest != signed.digest {
            self.report(signed.number, "the sink has another one")
        }
        self.compare(content)
        for head in content.heads {
            let known = AuditKnownHash(sequence: head.sequence, hash: head.hash, checkpoint: content.number)
            self.known[head.writer, default: []].appendUnlessLast(known)
        }
        self.latest = content
    }

    /// Compares the ends with what a checkpoint says of chains that had ended, or that there were.
    private mutating func compare(_ checkpoint: AuditCheckpoint) {
        let name = "checkpoint \(checkpoint.number)"
        let settled = checkpoint.settledWriter
        if settled >= self.settledDigests.count {
            self.report(self.settledDigests.count, 1, "the writer is missing, \(name) has it")
        } else if self.settledDigests[settled] != checkpoint.settledDigest {
            self.report(settled, 1, "\(name) has another end of this chain or of one before")
        }
        for head in checkpoint.heads {
            guard let current = self.heads[head.writer] else {
                self.report(head.writer, 1, "the writer is missing, \(name) has it")
                continue
            }
            if head.state != .open, (head.sequence, head.state) != (current.sequence, current.state) {
                self.report(head.writer, head.sequence, "the chain had ended here, says \(name)")
            }
        }
        for truncation in checkpoint.truncations
        where (self.truncations[truncation.writer]?.sequence ?? 0) < truncation.sequence {
            self.badTruncations[truncation.writer] = "\(name) says that more was removed"
        }
    }

    /// Ends the checkpoints, of which the latest has this number.
    mutating func finishCheckpoints(at latest: Int) {
        let seen = self.evidence.latest
        if seen > latest { self.report(latest &+ 1, "the sink has it, and the store has not") }
        if seen < self.evidence.required { self.report(self.evidence.required, "the sink had it, and has it no more") }
        if let last = self.latest, last.removedWriter > 0 {
            for head in self.heads.values where head.writer <= last.removedWriter {
                guard self.truncations[head.writer]?.sequence != head.sequence else { continue }
                let reason = "checkpoint \(last.number) says that the whole chain was removed"
                self.badTruncations[head.writer] = self.badTruncations[head.writer] ?? reason
            }
        }
        for writer in self.truncations.keys.sorted() where self.heads[writer] == nil {
            self.report(writer, 1, "records of a writer that never started were removed")
        }
    }

    // MARK: Chains

    func isGenuine(_ head: AuditHead) -> Bool { self.sealer?.isGenuine(head) != false }

    func failureAtBeginning(of writer: Int) -> Verdict? {
        let truncation = self.truncations[writer]
        if let reason = self.badTruncations[writer] {
            return Self.tampered(writer, truncation?.sequence ?? 1, reason)
        }
        guard let truncation else { return nil }
        let other = self.known[writer]?.first { $0.sequence == truncation.sequence && $0.hash != truncation.hash }
        return other.map {
            Self.tampered(writer, truncation.sequence, "\($0.source) has another record in its place")
        }
    }

    func beginning(of writer: Int) -> AuditChain {
        self.truncations[writer]?.chain ?? AuditChain(writer: writer)
    }

    /// A walk along a whole chain.
    ///
    /// Records may be added to it meanwhile and removed from it: who did so shows by the seal on its end, and by the
    /// signature of the truncation marker.
    func walker(to head: AuditHead) throws(Verdict) -> AuditWalker {
        if let failure = self.failureAtBeginning(of: head.writer) { throw failure }
        let start = self.beginning(of: head.writer)
        guard start.sequence < Int.max else {
            throw Self.tampered(head.writer, 1, Self.excessiveTruncation)
        }
        return AuditWalker(
            from: start,
            to: head,
            mayGrow: head.state == .open,
            followsTruncations: true,
            known: self.known(of: head.writer, in: (start.sequence + 1)...Int.max)
        )
    }

    func finish(_ walker: inout AuditWalker) throws(Verdict) {
        walker.finish()
        if let failure = walker.failure { throw failure }
        guard let head = walker.head else { return }
        guard walker.chain.sequence <= head.sequence else {
            throw Self.tampered(head.writer, head.sequence + 1, Self.excessiveTruncation)
        }
        // If all were removed, there was no record to compare.
        guard walker.chain.sequence == 0 || walker.chain.hash == head.hash else {
            throw .tampered(head.position, reason: "the chain's end is not the recorded one")
        }
        guard self.isGenuine(head) else {
            throw .tampered(head.position, reason: "the seal on the chain's end is not genuine")
        }
    }

    private func known(of writer: Int, in places: ClosedRange<Int>) -> [AuditKnownHash] {
        (self.known[writer] ?? []).filter { places.contains($0.sequence) }.sorted { $0.sequence < $1.sequence }
    }
}

extension [AuditKnownHash] {
    /// Appends what is known of a place, unless the last place is the same: of a chain that does not grow, checkpoints
    /// say nothing new.
    mutating func appendUnlessLast(_ known: AuditKnownHash) {
        if let last = self.last, last.sequence == known.sequence, last.hash == known.hash { return }
        self.append(known)
    }
}
