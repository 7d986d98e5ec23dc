/// Checks an export of the audit, line by line.
///
/// Pure. An export has every writer's end, and of each chain the stretches that were asked for, so that all that is signed can
/// be checked in a part as well.
package struct AuditExportVerifier: Sendable {
    package typealias Verdict = AuditVerifier.Verdict

    /// How far it has come.
    private enum Phase {
        /// Checkpoints come. Next: `ends`, `chains`.
        case checkpoints
        /// Truncation markers and heads come. Next: `chains`.
        case ends
        /// Stretches come. Next: `over`.
        case chains
        /// Nothing comes any more.
        case over
    }

    private let head: AuditExportHead
    private var verification: AuditVerification
    private var phase = Phase.checkpoints
    private var heads: [AuditHead] = []
    private var walker: AuditWalker?
    /// The last place of each chain of which there was a stretch.
    private var reached: [Int: Int] = [:]
    private var verdict: Verdict?
    package private(set) var summary = AuditExportSummary()
    /// The latest checkpoint's number; `nil` for none.
    package private(set) var checkpoint: Int?

    /// A verifier of the export that says this of itself.
    ///
    /// Without a sealer, the seals on the chains' ends are not checked. A public key wants a checkpoint to be there; without
    /// one, what is signed need only fit together.
    package init(_ head: AuditExportHead, sealer: AuditSealer?, publicKey: AuditPublicKey? = nil) {
        self.head = head
        self.verification = AuditVerification(sealer: sealer, publicKey: publicKey)
    }

    /// The writer whose end comes next.
    private var nextWriter: Int { self.heads.count + 1 }

    private mutating func fail(_ verdict: Verdict?) {
        self.verdict = self.verdict ?? verdict
    }

    private mutating func fail(_ writer: Int, _ sequence: Int, _ reason: String) {
        self.fail(.tampered(AuditPosition(writer: writer, sequence: sequence), reason: reason))
    }

    /// Notes that something in the place that comes next is nothing that an export has.
    package mutating func refuse(_ reason: String) {
        let place = self.walker?.chain.next ?? AuditPosition(writer: self.nextWriter, sequence: 1)
        self.fail(.tampered(place, reason: reason))
    }

    /// Takes a line; whether everything is as it should be so far. What comes after a bad one is not looked at.
    package mutating func take(_ line: AuditLine) -> Bool {
        guard self.verdict == nil else { return false }
        switch line {
        case .checkpoint(let signed) where self.phase == .checkpoints && signed.number > self.checkpoint ?? 0:
            self.verification.take(signed)
            self.verdict = self.verification.finding
            self.checkpoint = signed.number
            self.summary.checkpoints += 1
        case .truncation(let truncation, nil) where self.phase == .checkpoints || self.phase == .ends:
            self.take(truncation)
        case .head(let head) where self.phase == .checkpoints || self.phase == .ends:
            self.take(head)
        case .stretch(let stretch) where self.phase != .over:
            self.begin(stretch)
        case .record(let record) where self.walker?.chain.writer == record.writer:
            self.summary.records += 1
            self.walker?.step(record)
            self.fail(self.walker?.failure)
            if !self.head.shows(record.entry) {
                self.fail(.tampered(record.position, reason: "the record is none of those that the export is of"))
            }
        case .hidden(let records) where self.walker?.chain.writer == records.writer:
            self.summary.hidden += records.digests.count
            self.walker?.step(records)
            self.fail(self.walker?.failure)
        case .end(let stated) where self.phase != .over:
            self.end(stated)
        case .export, .checkpoint, .truncation, .head, .stretch, .record, .hidden, .end:
            self.refuse(self.phase == .over ? "something follows the export's end" : "the line is out of place")
        }
        return self.verdict == nil
    }

    /// What was found when the export is at its end.
    package mutating func finish() -> Verdict {
        if self.phase != .over { self.refuse("the export is cut off") }
        if let verdict = self.verdict { return verdict }
        let open = self.heads.filter { $0.state == .open && !self.head.liveWriters.contains($0.writer) }
        let unclean = (self.head.isLive ? open.dropLast() : open[...])
            .first { self.head.isWhole || self.reached[$0.writer] != nil }
        if let unclean { return .unclean(writer: unclean.writer, records: self.summary.records) }
        return .intact(records: self.summary.records)
    }

    // MARK: Ends

    private mutating func take(_ truncation: AuditTruncation) {
        self.phase = .ends
        guard truncation.writer == self.nextWriter, truncation.sequence > 0,
            self.verification.truncations[truncation.writer] == nil
        else { return self.refuse("the word that older records were removed is out of place") }
        self.verification.take(truncation)
        self.summary.removed &+= truncation.sequence
    }

    private mutating func take(_ head: AuditHead) {
        self.phase = .ends
        guard head.writer == self.nextWriter else { return self.fail(self.nextWriter, 1, "a writer is missing") }
        guard self.verification.beginning(of: head.writer).sequence <= head.sequence else {
            let reason = "more records are said to be removed than there were"
            return self.fail(.tampered(head.position, reason: reason))
        }
        guard self.verification.isGenuine(head) else {
            return self.fail(.tampered(head.position, reason: "the seal on the chain's end is not genuine"))
        }
        self.heads.append(head)
    }

    /// Holds the ends against what is signed, once all are known.
    private mutating func finishEnds() {
        guard self.phase == .checkpoints || self.phase == .ends else { return }
        self.phase = .chains
        if self.verification.publicKey != nil, self.checkpoint == nil {
            return self.fail(1, 1, "no checkpoint vouches for the chains")
        }
        self.verification.take(self.heads)
        for head in self.heads { self.fail(self.verification.failureAtBeginning(of: head.writer)) }
        self.verification.compareEnds()
        self.fail(self.verification.finding)
    }

    // MARK: Chains

    private mutating func begin(_ stretch: AuditStretch) {
        self.finishEnds()
        self.finishWalk()
        guard self.verdict == nil else { return }
        let writer = stretch.start.writer
        let reached = self.reached[writer] ?? self.verification.beginning(of: writer).sequence
        guard self.reached.keys.allSatisfy({ $0 <= writer }), stretch.start.sequence >= reached else {
            return self.fail(writer, stretch.through, "the stretch is out of place")
        }
        guard !self.head.isWhole || stretch.start.sequence == reached else {
            return self.fail(writer, reached + 1, "the record is missing")
        }
        do throws(Verdict) {
            self.walker = try self.verification.walker(along: stretch)
        } catch {
            self.fail(error)
        }
    }

    private mutating func finishWalk() {
        self.walker?.finish()
        self.fail(self.walker?.failure)
        guard let chain = self.walker?.chain else { return }
        self.reached[chain.writer] = chain.sequence
    }

    private mutating func end(_ stated: AuditExportSummary) {
        self.finishEnds()
        self.finishWalk()
        if self.head.isWhole {
            for head in self.heads {
                let last = self.reached[head.writer] ?? self.verification.beginning(of: head.writer).sequence
                if last < head.sequence { self.fail(head.writer, last + 1, "the record is missing") }
            }
        }
        if stated != self.summary { self.refuse("the export has more or fewer records") }
        (self.phase, self.walker) = (.over, nil)
    }
}
