/// Reads chains out of a store in a form that others can verify, piece by piece.
///
/// What it reads is verified before it is given out.
package struct AuditExporter: Sendable {
    /// The store holds something else than was written, so that nothing can be vouched for.
    package struct Damage: Error, Sendable, Hashable {
        /// What is wrong, and where.
        package let verdict: AuditExportVerifier.Verdict

        /// What a verifier found.
        package init(verdict: AuditExportVerifier.Verdict) {
            self.verdict = verdict
        }
    }

    /// How much was exported.
    package struct Summary: Sendable, Hashable {
        /// Records that can be read.
        package var records = 0
        /// Records of which only the digest is there.
        package var hidden = 0
        /// Records before the chains' beginnings, which were removed because of their age.
        package var removed = 0

        /// So many.
        package init(records: Int = 0, hidden: Int = 0, removed: Int = 0) {
            (self.records, self.hidden, self.removed) = (records, hidden, removed)
        }
    }

    private static let chunk = 1_000

    private let store: any AuditStore
    private let tenant: String?
    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?

    /// An exporter.
    ///
    /// - Parameters:
    ///   - tenant: whose records can be read in it; `nil` for everybody's.
    ///   - sealer: checks the seals on the chains' ends; without it, they are not checked.
    ///   - publicKey: checks what was signed; without it, it is not checked.
    package init(
        store: any AuditStore,
        tenant: String?,
        sealer: AuditSealer? = nil,
        publicKey: AuditPublicKey? = nil
    ) {
        self.store = store
        self.tenant = tenant
        self.sealer = sealer
        self.publicKey = publicKey
    }

    /// Exports the latest checkpoint and all chains, or parts of them.
    ///
    /// - Parameters:
    ///   - places: the parts to export, by writer; `nil` for everything. Of the other writers, there is the end alone.
    ///   - emit: takes the parts in order.
    /// - Returns: how much there was.
    /// - Throws: ``Damage``, `storeUnavailable`, also when retention removed what was to be exported next, and what `emit`
    ///   throws.
    package func export(
        places: [Int: ClosedRange<Int>]? = nil,
        emit: (AuditExportItem) throws -> Void
    ) async throws -> Summary {
        // Read before the heads: what a checkpoint says was true by then.
        let ledger = try await self.store.ledger()
        let cuts = Dictionary(ledger.cuts.map { ($0.writer, $0) }, uniquingKeysWith: { first, _ in first })
        var verifier = AuditExportVerifier(
            isWhole: places == nil,
            isLive: true,
            sealer: self.sealer,
            // Nobody has signed anything in a store that was just made.
            publicKey: ledger.isNew ? nil : self.publicKey
        )
        var summary = Summary()
        func give(_ item: AuditExportItem) throws {
            guard verifier.take(item) else { throw Damage(verdict: verifier.finish(stated: nil)) }
            try emit(item)
        }
        if let checkpoint = ledger.checkpoints.last { try give(.checkpoint(checkpoint)) }
        let heads = try await self.store.heads()
        guard !heads.isEmpty || ledger.isNew else {
            let place = AuditPosition(writer: 1, sequence: 1)
            throw Damage(verdict: .tampered(place, reason: "a writer is missing"))
        }
        for head in heads {
            let part = try await self.part(of: head, after: cuts[head.writer], places)
            summary.removed += part.cut?.sequence ?? 0
            try give(.chain(part))
            var last = part.start.sequence
            while last < part.through {
                let limit = min(Self.chunk, part.through - last)
                let records = try await self.store.records(of: head.writer, after: last, limit: limit)
                if records.first?.sequence != last + 1 { try await self.requireNoCut(beyond: last, of: head.writer) }
                for record in records {
                    let item = self.item(record)
                    if case .record = item { summary.records += 1 } else { summary.hidden += 1 }
                    try give(item)
                }
                // The verifier tells that the rest is missing.
                guard let end = records.last?.sequence else { break }
                last = end
            }
        }
        switch verifier.finish(stated: summary) {
        case .intact, .unclean: return summary
        case let verdict: throw Damage(verdict: verdict)
        }
    }

    /// The part of a chain that is asked for; of a chain that is not, its end.
    private func part(
        of head: AuditHead,
        after cut: AuditCut?,
        _ places: [Int: ClosedRange<Int>]?
    ) async throws -> AuditExportChain {
        let whole = cut?.chain ?? AuditChain(writer: head.writer)
        var part = AuditExportChain(start: whole, through: head.sequence, head: head)
        if let places {
            if let range = places[head.writer], range.lowerBound <= head.sequence, range.upperBound > whole.sequence {
                part.start = try await self.chain(through: max(range.lowerBound, 1) - 1, from: whole)
                part.through = min(range.upperBound, head.sequence)
            } else {
                part.start = head.chain
            }
        }
        if part.start == cut?.chain { part.cut = cut }
        return part
    }

    /// The chain up to a place, as it is stored.
    private func chain(through sequence: Int, from whole: AuditChain) async throws -> AuditChain {
        guard sequence > whole.sequence else { return whole }
        let stored = try await self.store.records(of: whole.writer, after: sequence - 1, limit: 1).first
        guard let stored, stored.sequence == sequence else {
            try await self.requireNoCut(beyond: sequence - 1, of: whole.writer)
            let place = AuditPosition(writer: whole.writer, sequence: sequence)
            throw Damage(verdict: .tampered(place, reason: "the record is missing"))
        }
        return AuditChain(writer: whole.writer, sequence: sequence, hash: stored.hash)
    }

    private func item(_ stored: ChainedAuditRecord) -> AuditExportItem {
        if self.tenant == nil || stored.entry.tenant == self.tenant { return .record(stored) }
        let digest = AuditChain.digest(of: stored.entry, writer: stored.writer, sequence: stored.sequence)
        return .hidden(
            HiddenAuditRecord(
                writer: stored.writer,
                sequence: stored.sequence,
                digest: digest,
                hash: stored.hash
            )
        )
    }

    /// - Throws: `storeUnavailable` when records after a place are missing because retention has removed them meanwhile.
    private func requireNoCut(beyond sequence: Int, of writer: Int) async throws(GatewayError) {
        guard let cut = try await self.store.cuts().first(where: { $0.writer == writer }), cut.sequence > sequence,
            self.publicKey?.isGenuine(cut.signature, of: cut.text) != false
        else { return }
        throw GatewayError(.storeUnavailable, "Old records were removed meanwhile; export again")
    }
}
