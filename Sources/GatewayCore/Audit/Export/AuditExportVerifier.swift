/// Checks an export of the audit, part by part.
///
/// Pure: whoever reads the export hands over its parts. It has every writer's end, and of each chain the part that was
/// asked for, so that all that is signed can be checked in a part as well.
package struct AuditExportVerifier: Sendable {
    /// What was found.
    package enum Verdict: Sendable, Hashable {
        /// Every record is what was exported.
        case intact(AuditExporter.Summary)
        /// Something was changed; this is the first bad place.
        case tampered(AuditPosition, reason: String)
        /// The checkpoint that vouches for the chains was changed.
        case checkpointTampered(number: Int, reason: String)
        /// The chains hold, but this writer had ended uncleanly.
        case unclean(writer: Int, AuditExporter.Summary)
    }

    private let isWhole: Bool
    private let isLive: Bool
    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?
    private var claims: AuditExportClaims?
    private var chain: AuditChain?
    private var part: AuditExportChain?
    private var summary = AuditExporter.Summary()
    /// Writers whose chains were open, rising, and whether the export has records of them.
    private var open: [(writer: Int, isExported: Bool)] = []
    private var verdict: Verdict?

    /// A verifier of one export.
    ///
    /// - Parameters:
    ///   - isWhole: whether it has every chain as a whole.
    ///   - isLive: whether a process wrote to the last open chain meanwhile.
    ///   - sealer: checks the seals on the chains' ends; without it, they are not checked.
    ///   - publicKey: checks what was signed, and wants a checkpoint to be there; without it, only that what is there fits
    ///     together.
    package init(isWhole: Bool, isLive: Bool, sealer: AuditSealer?, publicKey: AuditPublicKey? = nil) {
        self.isWhole = isWhole
        self.isLive = isLive
        self.sealer = sealer
        self.publicKey = publicKey
    }

    /// The number of the checkpoint that the export has, once it was met.
    package var checkpoint: Int? { self.claims?.number }

    /// The place that comes next.
    package var next: AuditPosition {
        AuditPosition(writer: self.chain?.writer ?? 1, sequence: (self.chain?.sequence ?? 0) &+ 1)
    }

    /// Takes a part; what comes after a bad one is not looked at.
    ///
    /// - Returns: whether everything is as it should be so far.
    package mutating func take(_ item: AuditExportItem) -> Bool {
        guard self.verdict == nil else { return false }
        switch item {
        case .checkpoint(let checkpoint):
            self.begin(checkpoint)
        case .chain(let part):
            self.finishPart()
            if self.verdict == nil { self.begin(part) }
        case .record(let record):
            let digest = AuditChain.digest(of: record.entry, writer: record.writer, sequence: record.sequence)
            self.follow(record.writer, record.sequence, digest, record.hash)
            self.summary.records += 1
        case .hidden(let record):
            self.follow(record.writer, record.sequence, record.digest, record.hash)
            self.summary.hidden += 1
        }
        return self.verdict == nil
    }

    /// Notes that something in the place that comes next is nothing that an export has.
    package mutating func refuse(_ reason: String) {
        self.fail(self.next, reason)
    }

    /// What was found when the export is at its end.
    ///
    /// - Parameter stated: how much it says that it has; `nil` when it does not say, because it was cut off.
    /// - Returns: whether it is intact, and the first place where it is not.
    package mutating func finish(stated: AuditExporter.Summary?) -> Verdict {
        self.finishPart()
        if self.publicKey != nil, self.claims == nil { self.fail(self.next, "no checkpoint vouches for the chains") }
        if let failure = self.claims?.failure(after: self.part?.start.writer ?? 0) {
            self.fail(failure.place, failure.reason)
        }
        if self.verdict == nil, stated != self.summary {
            self.fail(self.next, stated == nil ? "the export is cut off" : "the export has more or fewer records")
        }
        if let verdict = self.verdict { return verdict }
        if let unclean = (self.isLive ? self.open.dropLast() : self.open[...]).first(where: \.isExported) {
            return .unclean(writer: unclean.writer, self.summary)
        }
        return .intact(self.summary)
    }

    // MARK: Checkpoint

    private mutating func begin(_ signed: SignedCheckpoint) {
        guard self.claims == nil, self.part == nil else { return self.refuse("a checkpoint is out of place") }
        guard let content = signed.content, content.number == signed.number else {
            self.verdict = .checkpointTampered(number: signed.number, reason: "it was changed")
            return
        }
        if let publicKey = self.publicKey, !publicKey.isGenuine(signed.signature, of: signed.text) {
            self.verdict = .checkpointTampered(number: signed.number, reason: "its signature is not genuine")
            return
        }
        self.claims = AuditExportClaims(content)
    }

    // MARK: Chains

    private mutating func begin(_ part: AuditExportChain) {
        let (start, head) = (part.start, part.head)
        let place = AuditPosition(writer: start.writer, sequence: start.sequence &+ 1)
        let expected = (self.part?.start.writer ?? 0) &+ 1
        guard start.writer == expected else {
            return self.fail(AuditPosition(writer: expected, sequence: 1), "a writer is missing")
        }
        if self.publicKey != nil, self.claims == nil { return self.fail(place, "no checkpoint vouches for the chains") }
        guard start.sequence > 0 || start == AuditChain(writer: start.writer) else {
            return self.fail(place, "the chain's beginning is not the writer's")
        }
        if let failure = self.failure(ofCutIn: part) { return self.fail(failure.place, failure.reason) }
        guard head.writer == start.writer, (start.sequence...max(start.sequence, head.sequence)).contains(part.through),
            !self.isWhole || part.through == head.sequence
        else { return self.fail(place, "the export does not reach the chain's end") }
        if let sealer = self.sealer, !sealer.isGenuine(head) {
            return self.fail(
                AuditPosition(writer: head.writer, sequence: head.sequence),
                "the seal on the chain's end is not genuine"
            )
        }
        if let failure = self.claims?.failure(of: head) { return self.fail(failure.place, failure.reason) }
        if let reason = self.claims?.reason(against: start) {
            return self.fail(AuditPosition(writer: start.writer, sequence: start.sequence), reason)
        }
        if head.state == .open { self.open.append((head.writer, self.isWhole || part.through > start.sequence)) }
        self.summary.removed += part.cut?.sequence ?? 0
        (self.part, self.chain) = (part, start)
    }

    /// What is wrong with the word that a chain's first records were removed, or with its lack.
    private func failure(ofCutIn part: AuditExportChain) -> AuditExportClaims.Failure? {
        guard let cut = part.cut else {
            guard self.isWhole, part.start.sequence > 0 else { return nil }
            return (AuditPosition(writer: part.start.writer, sequence: 1), "the record is missing")
        }
        let place = AuditPosition(writer: part.start.writer, sequence: part.start.sequence)
        guard cut.chain == part.start, cut.sequence > 0 else {
            return (place, "the word that older records were removed is out of place")
        }
        if let publicKey = self.publicKey, !publicKey.isGenuine(cut.signature, of: cut.text) {
            return (place, "the word that older records were removed is not genuine")
        }
        return nil
    }

    private mutating func follow(_ writer: Int, _ sequence: Int, _ digest: [UInt8], _ hash: [UInt8]) {
        guard var chain = self.chain, let part = self.part, writer == chain.writer, chain.sequence < part.through,
            sequence == chain.sequence + 1
        else { return self.fail(self.next, "the record is missing or out of place") }
        chain.append(digest: digest)
        guard chain.hash == hash else { return self.fail(self.next, "the record was changed") }
        if let reason = self.claims?.reason(against: chain) { return self.fail(self.next, reason) }
        self.chain = chain
    }

    private mutating func finishPart() {
        guard self.verdict == nil, let chain = self.chain, let part = self.part else { return }
        guard chain.sequence == part.through else { return self.fail(self.next, "the record is missing") }
        guard chain.sequence != part.head.sequence || chain.hash == part.head.hash else {
            return self.fail(
                AuditPosition(writer: chain.writer, sequence: chain.sequence),
                "the chain's end is not the recorded one"
            )
        }
    }

    private mutating func fail(_ position: AuditPosition, _ reason: String) {
        if self.verdict == nil { self.verdict = .tampered(position, reason: reason) }
    }
}
