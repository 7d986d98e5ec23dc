/// Checks what a store keeps about its chains, and draws from it what the chains must be like.
///
/// Pure. A checkpoint that is not what was signed is noted and asked no further, so that what it says of a chain is
/// never held against the chain.
struct LedgerCheck {
    /// What is said of a cut that the gateway did not sign.
    static let forgedCut = "the word that older records were removed is not genuine"

    /// Where chains begin, by writer; one that is not genuine is noted in ``badCuts`` and still followed.
    var cuts: [Int: AuditCut] = [:]
    /// The latest checkpoint's number; 0 for none.
    private(set) var latest = 0
    /// The first thing that is wrong with the checkpoints.
    private(set) var verdict: AuditVerifier.Verdict?
    private var badCuts: [Int: String] = [:]
    private var genuine: [AuditCheckpoint] = []
    private var landmarks: [Int: [AuditLandmark]]

    init(_ ledger: AuditLedger, publicKey: AuditPublicKey?, witness: AuditWitness) {
        self.landmarks = witness.landmarks
        for cut in ledger.cuts {
            self.cuts[cut.writer] = cut
            if let publicKey, !publicKey.isGenuine(cut.signature, of: cut.text) {
                self.badCuts[cut.writer] = Self.forgedCut
            }
        }
        self.latest = ledger.checkpoints.last?.number ?? 0
        self.checkEach(ledger.checkpoints, publicKey)
        self.checkRow(ledger, publicKey)
        self.checkWitness(ledger, witness)
        for checkpoint in self.genuine { self.note(checkpoint) }
    }

    // MARK: Checkpoints among themselves

    private mutating func report(_ number: Int, _ reason: String) {
        if self.verdict == nil { self.verdict = .checkpointTampered(number: number, reason: reason) }
    }

    /// Signatures and links.
    private mutating func checkEach(_ checkpoints: [SignedCheckpoint], _ publicKey: AuditPublicKey?) {
        var digests: [Int: [UInt8]] = [:]
        for checkpoint in checkpoints {
            defer { digests[checkpoint.number] = checkpoint.digest }
            guard let content = checkpoint.content, content.number == checkpoint.number else {
                self.report(checkpoint.number, "it was changed")
                continue
            }
            if let publicKey, !publicKey.isGenuine(checkpoint.signature, of: checkpoint.text) {
                self.report(checkpoint.number, "its signature is not genuine")
                continue
            }
            let anchor = AuditCheckpoint.anchorNumber(before: content.number)
            let before = [(content.number - 1, content.previous), (anchor, content.anchor)]
            for (number, digest) in before {
                if let known = digests[number], known != digest {
                    self.report(number, "it is not the one that checkpoint \(content.number) follows")
                }
            }
            self.genuine.append(content)
        }
    }

    /// Which checkpoints there are, and which there should be.
    private mutating func checkRow(_ ledger: AuditLedger, _ publicKey: AuditPublicKey?) {
        guard let end = ledger.end else {
            if let first = ledger.checkpoints.first {
                return self.report(first.number, "the end of the row is missing")
            }
            // A gateway removes nothing before it has made a checkpoint.
            if !ledger.cuts.isEmpty { self.report(1, "it and all others are missing, though records were removed") }
            if ledger.isInUse { self.report(1, "it and all others are missing, with the word of the latest") }
            return
        }
        if let publicKey, !publicKey.isGenuine(end.signature, of: end.text) {
            return self.report(end.number, "the end of the row is not genuine")
        }
        guard let last = ledger.checkpoints.last else {
            if !ledger.isNew { self.report(max(1, end.number), "it is missing") }
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
        for checkpoint in ledger.checkpoints {
            expected = content.firstKept(from: expected)
            if expected < checkpoint.number { return self.report(expected, "it is missing") }
            if !content.keeps(checkpoint.number) { return self.report(checkpoint.number, "it should not be there") }
            expected = checkpoint.number &+ 1
        }
    }

    private mutating func checkWitness(_ ledger: AuditLedger, _ witness: AuditWitness) {
        let seen = witness.checkpoints.keys.max() ?? 0
        if seen > self.latest { self.report(self.latest + 1, "the sink has it, and the store has not") }
        if seen < witness.required { self.report(witness.required, "the sink had it, and has it no more") }
        for checkpoint in ledger.checkpoints {
            if let digest = witness.checkpoints[checkpoint.number], digest != checkpoint.digest {
                self.report(checkpoint.number, "the sink has another one")
            }
        }
    }

    // MARK: Checkpoints and chains

    private mutating func note(_ checkpoint: AuditCheckpoint) {
        for head in checkpoint.heads {
            let source = AuditLandmark.Source.checkpoint(checkpoint.number)
            self.landmarks[head.writer, default: []]
                .append(AuditLandmark(sequence: head.sequence, hash: head.hash, source: source))
        }
        for cut in checkpoint.cuts where (self.cuts[cut.writer]?.sequence ?? 0) < cut.sequence {
            self.badCuts[cut.writer] = "checkpoint \(checkpoint.number) says that more was removed"
        }
    }

    /// Compares what checkpoints say of chains that had ended, or that there were, with the heads.
    mutating func compare(with heads: [AuditHead]) {
        var ends = AuditSettledEnds()
        var digests = [ends.digest]
        for head in heads where head.writer == digests.count {
            ends.append(head)
            digests.append(ends.digest)
        }
        let known = Dictionary(heads.map { ($0.writer, $0) }, uniquingKeysWith: { first, _ in first })
        for checkpoint in self.genuine {
            let name = "checkpoint \(checkpoint.number)"
            if checkpoint.settledWriter >= digests.count {
                self.blame(AuditPosition(writer: digests.count, sequence: 1), "the writer is missing, \(name) has it")
            } else if checkpoint.settledWriter >= 0, digests[checkpoint.settledWriter] != checkpoint.settledDigest {
                let place = AuditPosition(writer: checkpoint.settledWriter, sequence: 1)
                self.blame(place, "\(name) has another end of this chain or of one before")
            }
            for head in checkpoint.heads {
                guard let current = known[head.writer] else {
                    self.blame(AuditPosition(writer: head.writer, sequence: 1), "the writer is missing, \(name) has it")
                    continue
                }
                if head.state != .open, (head.sequence, head.state) != (current.sequence, current.state) {
                    let place = AuditPosition(writer: head.writer, sequence: head.sequence)
                    self.blame(place, "the chain had ended here, says \(name)")
                }
            }
        }
        if let last = self.genuine.last, last.removedWriter > 0 {
            for head in heads where head.writer <= last.removedWriter {
                guard self.cuts[head.writer]?.sequence != head.sequence else { continue }
                let reason = "checkpoint \(last.number) says that the whole chain was removed"
                self.badCuts[head.writer] = self.badCuts[head.writer] ?? reason
            }
        }
        for writer in self.cuts.keys.sorted() where known[writer] == nil {
            self.blame(
                AuditPosition(writer: writer, sequence: 1),
                "records of a writer that never started were removed"
            )
        }
    }

    /// Notes a bad place that walking the chains may not come by.
    private mutating func blame(_ place: AuditPosition, _ reason: String) {
        if self.verdict == nil { self.verdict = .tampered(place, reason: reason) }
    }

    /// What is wrong with the beginning of a chain, or `nil`.
    func failureAtCut(of writer: Int) -> AuditWalker.Failure? {
        let cut = self.cuts[writer]
        if let reason = self.badCuts[writer] {
            return AuditWalker.Failure(sequence: cut?.sequence ?? 1, reason: reason)
        }
        guard let cut else { return nil }
        let other = self.landmarks[writer]?.first { $0.sequence == cut.sequence && $0.hash != cut.hash }
        return other.map {
            AuditWalker.Failure(sequence: cut.sequence, reason: "\($0.source) has another record in its place")
        }
    }

    /// What is known of a chain after its beginning, by rising place.
    func landmarks(of writer: Int, after sequence: Int) -> [AuditLandmark] {
        (self.landmarks[writer] ?? []).filter { $0.sequence > sequence }.sorted { $0.sequence < $1.sequence }
    }
}
