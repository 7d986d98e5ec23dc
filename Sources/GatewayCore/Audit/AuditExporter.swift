/// Reads the audit out of a store in a form that others can verify, line by line.
///
/// What is narrowed to a tenant or a time comes as stretches: of each chain those parts between two places that checkpoints
/// sign in which there is something to show. All else in them can be seen by its digest alone, and what lies between them is
/// not there. What it reads is verified before it is given out.
package struct AuditExporter: Sendable {
    /// Records, or places of records, of one read.
    private static let chunk = 1_000

    private let store: any AuditStore
    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?

    /// An exporter; without a sealer or a public key, seals or signatures are not checked.
    package init(store: any AuditStore, sealer: AuditSealer? = nil, publicKey: AuditPublicKey? = nil) {
        (self.store, self.sealer, self.publicKey) = (store, sealer, publicKey)
    }

    /// Exports what is asked for, line by line in order; how much there was.
    ///
    /// Throws an ``AuditVerifier/Verdict`` where the store holds something else than was written, so that nothing can be
    /// vouched for; `storeUnavailable`, also when retention removed what was to be exported next; and what `emit` throws.
    package func export(_ head: AuditExportHead, emit: (AuditLine) throws -> Void) async throws -> AuditExportSummary {
        // Read before the heads: what a checkpoint says was true by then.
        let signatures = try await self.store.signatures()
        let heads = try await self.store.heads()
        guard !heads.isEmpty || signatures.isNew else { throw AuditVerifier.missing(writer: 1) }
        let parts = AuditExportParts(signatures, heads)
        var stretches = parts.whole
        if !head.isWhole { stretches = parts.stretches(try await self.intervals(head, parts)) }
        // Nobody has signed anything in a store that was just made.
        let publicKey = signatures.isNew ? nil : self.publicKey
        var verifier = AuditExportVerifier(head, sealer: self.sealer, publicKey: publicKey)
        func give(_ line: AuditLine) throws {
            guard verifier.take(line) else { throw verifier.finish() }
            try emit(line)
        }
        try emit(.export(head))
        let needed = parts.checkpoints(of: stretches)
        for checkpoint in signatures.checkpoints where needed.contains(checkpoint.number) {
            try give(.checkpoint(checkpoint))
        }
        for chain in heads {
            if let truncation = parts.truncations[chain.writer] { try give(.truncation(truncation, ended: nil)) }
            try give(.head(chain))
        }
        for stretch in stretches {
            try give(.stretch(stretch))
            try await self.export(stretch, head, give)
        }
        let summary = verifier.summary
        try give(.end(summary))
        switch verifier.finish() {
        case .intact, .unclean: return summary
        case let verdict: throw verdict
        }
    }

    /// In which intervals of which chains there is something to show.
    private func intervals(_ head: AuditExportHead, _ parts: AuditExportParts) async throws -> [Int: Set<Int>] {
        var intervals: [Int: Set<Int>] = [:]
        var last: AuditPlace?
        while true {
            let places = try await self.store.places(
                of: head.tenant,
                from: head.from,
                to: head.to,
                after: last,
                limit: Self.chunk
            )
            for place in places {
                let position = place.cursor.position
                guard let interval = parts.interval(of: position) else { continue }
                intervals[position.writer, default: []].insert(interval)
            }
            last = places.last
            if places.count < Self.chunk { return intervals }
        }
    }

    private func export(
        _ stretch: AuditStretch,
        _ head: AuditExportHead,
        _ give: (AuditLine) throws -> Void
    ) async throws {
        var chain = stretch.start
        var hidden = HiddenAuditRecords(writer: chain.writer, sequence: 0, digests: [], hash: [])
        func giveHidden() throws {
            if !hidden.digests.isEmpty { try give(.hidden(hidden)) }
            hidden.digests = []
        }
        while chain.sequence < stretch.through {
            let limit = min(Self.chunk, stretch.through - chain.sequence)
            let records = try await self.store.records(of: chain.writer, after: chain.sequence, limit: limit)
            if records.first?.sequence != chain.sequence + 1 {
                try await self.requireNoTruncation(beyond: chain.sequence, of: chain.writer)
                throw AuditVerifier.Verdict.tampered(chain.next, reason: "the record is missing")
            }
            for record in records {
                let place = chain.next
                guard record.sequence == place.sequence else {
                    throw AuditVerifier.Verdict.tampered(place, reason: "the record is missing")
                }
                let digest = chain.digest(of: record.entry)
                chain.append(digest: digest)
                guard chain.hash == record.hash else {
                    throw AuditVerifier.Verdict.tampered(place, reason: "the record was changed")
                }
                if head.shows(record.entry) {
                    try giveHidden()
                    try give(.record(record))
                    continue
                }
                if hidden.digests.isEmpty { hidden.sequence = place.sequence }
                hidden.digests.append(digest)
                hidden.hash = record.hash
                if hidden.digests.count == HiddenAuditRecords.maxCount { try giveHidden() }
            }
        }
        try giveHidden()
    }

    /// Throws `storeUnavailable` when records after a place are missing because retention has removed them meanwhile.
    private func requireNoTruncation(beyond sequence: Int, of writer: Int) async throws(GatewayError) {
        guard let truncation = try await self.store.truncations().first(where: { $0.writer == writer }),
            truncation.sequence > sequence,
            self.publicKey?.isGenuine(truncation.signature, of: truncation.text) != false
        else { return }
        throw GatewayError(.storeUnavailable, "Old records were removed meanwhile; export again")
    }
}

/// The places of chains for which something vouches, and the intervals between them.
private struct AuditExportParts {
    private struct Boundary {
        var chain: AuditChain
        /// The checkpoint that vouches for it; `nil` for the chain's beginning or end.
        var checkpoint: Int?
    }

    let truncations: [Int: AuditTruncation]
    private let heads: [AuditHead]
    /// By writer, by rising place, from the chain's beginning to its end.
    private var boundaries: [Int: [Boundary]] = [:]
    private let latest: Int

    init(_ signatures: AuditSignatures, _ heads: [AuditHead]) {
        self.heads = heads
        self.latest = signatures.checkpoints.last?.number ?? 0
        self.truncations = signatures.truncations.keyed(by: \.writer)
        for head in heads {
            let beginning = self.truncations[head.writer]?.chain ?? AuditChain(writer: head.writer)
            self.boundaries[head.writer] = [Boundary(chain: beginning)]
        }
        let ends = heads.keyed(by: \.writer)
        for checkpoint in signatures.checkpoints {
            for head in checkpoint.content?.heads ?? [] where head.sequence < ends[head.writer]?.sequence ?? 0 {
                self.add(head.chain, by: checkpoint.number)
            }
        }
        for head in heads { self.add(head.chain) }
    }

    private mutating func add(_ chain: AuditChain, by checkpoint: Int? = nil) {
        guard let last = self.boundaries[chain.writer]?.last, last.chain.sequence < chain.sequence else { return }
        self.boundaries[chain.writer]?.append(Boundary(chain: chain, checkpoint: checkpoint))
    }

    /// Every chain from its beginning to its end.
    var whole: [AuditStretch] {
        self.heads.compactMap { head in
            guard let start = self.boundaries[head.writer]?.first?.chain, start.sequence < head.sequence
            else { return nil }
            return AuditStretch(start: start, through: head.sequence)
        }
    }

    /// The interval that has a place; `nil` for one behind the chain's end.
    func interval(of position: AuditPosition) -> Int? {
        guard let boundaries = self.boundaries[position.writer] else { return nil }
        var (low, high) = (0, boundaries.count)
        while low < high {
            let middle = low + (high - low) / 2
            if boundaries[middle].chain.sequence < position.sequence {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low > 0 && low < boundaries.count ? low - 1 : nil
    }

    /// Neighbouring intervals are one stretch.
    func stretches(_ intervals: [Int: Set<Int>]) -> [AuditStretch] {
        var stretches: [AuditStretch] = []
        for writer in intervals.keys.sorted() {
            guard let boundaries = self.boundaries[writer] else { continue }
            for interval in (intervals[writer] ?? []).sorted() {
                let (start, through) = (boundaries[interval].chain, boundaries[interval + 1].chain.sequence)
                if let last = stretches.last, last.start.writer == writer, last.through == start.sequence {
                    stretches[stretches.count - 1].through = through
                } else {
                    stretches.append(AuditStretch(start: start, through: through))
                }
            }
        }
        return stretches
    }

    /// The checkpoints that vouch for where stretches begin and end, and the latest, which vouches for the chains' ends.
    func checkpoints(of stretches: [AuditStretch]) -> Set<Int> {
        var numbers: Set<Int> = [self.latest]
        for stretch in stretches {
            for boundary in self.boundaries[stretch.start.writer] ?? []
            where boundary.chain.sequence == stretch.start.sequence || boundary.chain.sequence == stretch.through {
                if let number = boundary.checkpoint { numbers.insert(number) }
            }
        }
        return numbers
    }
}
