/// Checks what is signed of an audit by itself and against the ends of its chains, and draws from it what their records must
/// be like.
///
/// Pure. It takes the checkpoints and truncation markers first, then the ends, then the records. A checkpoint that is not what was signed is noted and asked no further, so that what it says of a chain is
/// never held against the chain.
struct AuditVerification: Sendable {
    typealias Verdict = AuditVerifier.Verdict

    /// What is said of a truncation marker that the gateway did not sign.
    static let forgedTruncation = "the word that older records were removed is not genuine"
    /// The reason where a truncation marker lies behind the chain's end.
    static let excessiveTruncation = "more records are said to be removed than there were"

    let sealer: AuditSealer?
    let publicKey: AuditPublicKey?
    /// The first thing wrong with what is signed, or with the ends; walking along the chains may not come by it.
    private(set) var finding: Verdict?
    /// Those that are genuine, by rising number.
    private var checkpoints: [AuditCheckpoint] = []
    /// Where chains begin, by writer; one that is not genuine is noted and still followed.
    private(set) var truncations: [Int: AuditTruncation] = [:]
    private var heads: [AuditHead] = []
    private var badTruncations: [Int: String] = [:]
    private var known: [Int: [AuditKnownHash]] = [:]
    private var digests: [Int: [UInt8]] = [:]

    /// Without a sealer or a public key, seals or signatures are not checked.
    init(sealer: AuditSealer?, publicKey: AuditPublicKey?) {
        (self.sealer, self.publicKey) = (sealer, publicKey)
    }

    /// All that a store keeps but its chains, compared with what a second sink has of it.
    init(_ signatures: AuditSignatures, sealer: AuditSealer?, publicKey: AuditPublicKey?, evidence: AuditEvidence) {
        self.init(sealer: sealer, publicKey: publicKey)
        self.known = evidence.known
        for truncation in signatures.truncations { self.take(truncation) }
        for checkpoint in signatures.checkpoints { self.take(checkpoint) }
        self.checkRow(signatures)
        self.compare(signatures, with: evidence)
    }

    // MARK: What is signed

    private mutating func report(_ number: Int, _ reason: String) {
        if self.finding == nil { self.finding = .checkpointTampered(number: number, reason: reason) }
    }

    private mutating func report(_ writer: Int, _ sequence: Int, _ reason: String) {
        if self.finding == nil { self.finding = Self.tampered(writer, sequence, reason) }
    }

    private static func tampered(_ writer: Int, _ sequence: Int, _ reason: String) -> Verdict {
        .tampered(AuditPosition(writer: writer, sequence: sequence), reason: reason)
    }

    /// What a checkpoint says, if it is one that the gateway signed.
    static func content(of signed: SignedCheckpoint, _ publicKey: AuditPublicKey?) throws(Verdict) -> AuditCheckpoint {
        guard let content = signed.content, content.number == signed.number else {
            throw .checkpointTampered(number: signed.number, reason: "it was changed")
        }
        if let publicKey, !publicKey.isGenuine(signed.signature, of: signed.text) {
            throw .checkpointTampered(number: signed.number, reason: "its signature is not genuine")
        }
        return content
    }

    /// Takes the next checkpoint: its signature, and its links to those before it.
    mutating func take(_ signed: SignedCheckpoint) {
        defer { self.digests[signed.number] = signed.digest }
        let content: AuditCheckpoint
        do throws(Verdict) {
            content = try Self.content(of: signed, self.publicKey)
        } catch {
            self.finding = self.finding ?? error
            return
        }
        let anchor = AuditCheckpoint.anchorNumber(before: content.number)
        for (number, digest) in [(content.number - 1, content.previous), (anchor, content.anchor)] {
            if let known = self.digests[number], known != digest {
                self.report(number, "it is not the one that checkpoint \(content.number) follows")
            }
        }
        self.checkpoints.append(content)
        for head in content.heads {
            let known = AuditKnownHash(sequence: head.sequence, hash: head.hash, checkpoint: content.number)
            self.known[head.writer, default: []].append(known)
        }
    }

    mutating func take(_ truncation: AuditTruncation) {
        self.truncations[truncation.writer] = truncation
        if !self.isGenuine(truncation) { self.badTruncations[truncation.writer] = Self.forgedTruncation }
    }

    func isGenuine(_ truncation: AuditTruncation) -> Bool {
        self.publicKey?.isGenuine(truncation.signature, of: truncation.text) != false
    }

    /// Which checkpoints a store has, and which it should have.
    private mutating func checkRow(_ signatures: AuditSignatures) {
        guard let end = signatures.end else {
            if let first = signatures.checkpoints.first {
                return self.report(first.number, "the end of the row is missing")
            }
            // A gateway removes nothing before it has made a checkpoint.
            if !signatures.truncations.isEmpty {
                self.report(1, "it and all others are missing, though records were removed")
            }
            if signatures.isInUse { self.report(1, "it and all others are missing, with the word of the latest") }
            return
        }
        if let publicKey = self.publicKey, !publicKey.isGenuine(end.signature, of: end.text) {
            return self.report(end.number, "the end of the row is not genuine")
        }
        guard let last = signatures.checkpoints.last else {
            if !signatures.isNew { self.report(max(1, end.number), "it is missing") }
            return
        }
        guard last.number == end.number else {
            return last.number < end.number
                ? self.report(last.number + 1, "it is missing")
                : self.report(last.number, "it is behind the end of the row")
        }
        guard last.digest == end.digest else { return self.report(end.number, "it is not the one that was signed") }
        guard let content = last.content else { return }
        // The latest says which are kept; nothing else may be there, and nothing of it may be missing.
        var expected = content.oldest
        for checkpoint in signatures.checkpoints {
            expected = content.firstKept(from: expected)
            if expected < checkpoint.number { return self.report(expected, "it is missing") }
            if !content.keeps(checkpoint.number) { return self.report(checkpoint.number, "it should not be there") }
            expected = checkpoint.number &+ 1
        }
    }

    private mutating func compare(_ signatures: AuditSignatures, with evidence: AuditEvidence) {
        let latest = signatures.checkpoints.last?.number ?? 0
        let seen = evidence.digests.keys.max() ?? 0
        if seen > latest { self.report(latest + 1, "the sink has it, and the store has not") }
        if seen < evidence.required { self.report(evidence.required, "the sink had it, and has it no more") }
        for checkpoint in signatures.checkpoints {
            if let digest = evidence.digests[checkpoint.number], digest != checkpoint.digest {
                self.report(checkpoint.number, "the sink has another one")
            }
        }
    }

    // MARK: Ends

    /// Takes the ends of all chains and compares them with what checkpoints say of chains that had ended, or that there
    /// were.
    mutating func take(_ heads: [AuditHead]) {
        self.heads = heads
        var ends = AuditSettledEnds()
        var digests = [ends.digest]
        for head in heads where head.writer == digests.count {
            ends.append(head)
            digests.append(ends.digest)
        }
        let current = heads.keyed(by: \.writer)
        for checkpoint in self.checkpoints { self.compare(checkpoint, digests, current) }
        if let last = self.checkpoints.last, last.removedWriter > 0 {
            for head in heads where head.writer <= last.removedWriter {
                guard self.truncations[head.writer]?.sequence != head.sequence else { continue }
                let reason = "checkpoint \(last.number) says that the whole chain was removed"
                self.badTruncations[head.writer] = self.badTruncations[head.writer] ?? reason
            }
        }
        for writer in self.truncations.keys.sorted() where current[writer] == nil {
            self.report(writer, 1, "records of a writer that never started were removed")
        }
    }

    private mutating func compare(_ checkpoint: AuditCheckpoint, _ digests: [[UInt8]], _ current: [Int: AuditHead]) {
        let name = "checkpoint \(checkpoint.number)"
        let settled = checkpoint.settledWriter
        if settled >= digests.count {
            self.report(digests.count, 1, "the writer is missing, \(name) has it")
        } else if digests[settled] != checkpoint.settledDigest {
            self.report(settled, 1, "\(name) has another end of this chain or of one before")
        }
        for head in checkpoint.heads {
            guard let current = current[head.writer] else {
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

    func isGenuine(_ head: AuditHead) -> Bool { self.sealer?.isGenuine(head) != false }

    // MARK: Chains

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
        // Where all are removed, no record was met to be compared.
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
