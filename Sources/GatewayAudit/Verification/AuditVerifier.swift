/// Checks every chain of a store from its beginning to its sealed head, and the checkpoints that were signed of them.
///
/// It reads the store, and follows changes that are made meanwhile; ``AuditVerification`` and ``AuditWalker`` judge.
package struct AuditVerifier: Sendable {
    /// The result; one that is not intact is thrown if a walk can't continue.
    package enum Verdict: Error, Hashable {
        case intact(records: Int)
        /// Something was changed; this is the first bad place.
        case tampered(AuditChain.Position, reason: String)
        /// The chains hold by themselves, but a checkpoint was changed or is missing.
        case checkpointTampered(number: Int, reason: String)
        /// The chains hold, but this writer ended uncleanly and no later start has closed its chain yet.
        case unclean(writer: Int, records: Int)
    }

    /// A verdict, and what else an operator has to know.
    package struct Report: Sendable, Hashable {
        package var verdict: Verdict
        /// The last records of chains that a leader closed for dead replicas whose spools have not come back.
        ///
        /// A send that such a replica had accepted later, and that the store does not have, is recorded nowhere.
        package var abandoned: [AuditChain.Position] = []

        package init(_ verdict: Verdict, abandoned: [AuditChain.Position] = []) {
            (self.verdict, self.abandoned) = (verdict, abandoned)
        }
    }

    /// Rows of one read; also how often progress is told.
    private static let page = 4_096
    /// Checkpoints of one read.
    private static let checkpointPage = 1_000

    private let store: any AuditChainReader & AuditSignatureReader
    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?
    private let evidence: AuditEvidence

    /// A verifier of a store, compared with what a second sink has of the same chains.
    ///
    /// Without a sealer, the heads' seals are not checked; without a public key, of checkpoints only that they fit
    /// together and to the chains.
    package init(
        store: any AuditChainReader & AuditSignatureReader,
        sealer: AuditSealer?,
        publicKey: AuditPublicKey? = nil,
        evidence: AuditEvidence = AuditEvidence()
    ) {
        (self.store, self.sealer) = (store, sealer)
        (self.publicKey, self.evidence) = (publicKey, evidence)
    }

    /// Verifies everything, and tells now and then how many records have been looked at, and how many there are about.
    ///
    /// A process that writes may have the last writer open, and each replica of several the writers that `liveWriters`
    /// tells: that is asked once all chains have been walked along and some of them have no end.
    package func verify(
        isLive: @autoclosure () throws(GatewayError) -> Bool,
        progress: @Sendable (_ done: Int, _ total: Int) -> Void = { _, _ in },
        liveWriters: () async throws(GatewayError) -> Set<Int> = { [] }
    ) async throws(GatewayError) -> Verdict {
        try await self.report(isLive: try isLive(), progress: progress, liveWriters: liveWriters).verdict
    }

    /// The same, with what else was seen on the way.
    package func report(
        isLive: @autoclosure () throws(GatewayError) -> Bool,
        progress: @Sendable (_ done: Int, _ total: Int) -> Void = { _, _ in },
        liveWriters: () async throws(GatewayError) -> Set<Int> = { [] }
    ) async throws(GatewayError) -> Report {
        var abandoned: [AuditChain.Position] = []
        let verdict = try await self.verdict(isLive: isLive, progress, liveWriters, &abandoned)
        return Report(verdict, abandoned: abandoned)
    }

    private func verdict(
        isLive: () throws(GatewayError) -> Bool,
        _ progress: @Sendable (_ done: Int, _ total: Int) -> Void,
        _ liveWriters: () async throws(GatewayError) -> Set<Int>,
        _ abandoned: inout [AuditChain.Position]
    ) async throws(GatewayError) -> Verdict {
        // Read before the heads: what a checkpoint says was true by then.
        let signatures = try await self.store.signatures()
        // Records are read after the heads, so a live writer may be ahead of its head, never behind.
        let heads = try await self.store.heads()
        var verification = self.verification(of: signatures, heads)
        let latest = signatures.latest?.number ?? 0
        try await self.takeCheckpoints(through: latest, &verification)
        verification.finishCheckpoints(at: latest)
        // Numbers that somebody else stored may overflow.
        let removed = verification.truncations.values.reduce(0) { $0 &+ $1.sequence }
        let total = max(0, heads.reduce(0) { $0 &+ $1.sequence } &- removed)
        progress(0, total)
        var records = 0
        var open: Set<Int> = []
        var opening: (writer: Int, number: Int)?
        for (index, head) in heads.enumerated() {
            guard head.writer == index + 1 else { return Self.missing(writer: index + 1) }
            let done = records
            let walk = try await self.walk(to: head, verification) { rows in
                // Records that a live writer adds meanwhile are checked, and not counted.
                progress(min(done + rows, total), total)
            }
            let walker: AuditWalker
            switch walk {
            case .failure(let verdict): return verdict
            case .success(let walked): walker = walked
            }
            let removed = (walker.truncation ?? verification.truncations[head.writer])?.sequence ?? 0
            records += max(0, head.sequence &- removed)
            if walker.head?.state == .open { open.insert(head.writer) }
            if walker.isClosedByLeader {
                abandoned.append(AuditChain.Position(writer: head.writer, sequence: walker.chain.sequence - 1))
            }
            if let former = walker.opening?.continuesWriter { abandoned.removeAll { $0.writer == former } }
            if let number = walker.opening?.afterCheckpoint, number > 0 {
                if let verdict = try await self.verdict(on: number, of: head.writer, after: opening, latest) {
                    return verdict
                }
                opening = (head.writer, number)
            }
        }
        if let stray = try await self.strayWriter(heads) {
            let place = AuditChain.Position(writer: stray, sequence: 1)
            return .tampered(place, reason: "records of a writer that never started")
        }
        if let verdict = verification.finding ?? Self.unrecorded(signatures) { return verdict }
        if let unclean = try await self.firstUnclean(open, isLive: isLive, liveWriters: liveWriters) {
            return .unclean(writer: unclean, records: records)
        }
        return .intact(records: records)
    }

    /// Takes the checkpoints between two numbers; the oldest may be removed meanwhile.
    private func takeCheckpoints(
        after first: Int = .min,
        through latest: Int,
        _ verification: inout AuditVerification
    ) async throws(GatewayError) {
        var last = first
        while last < latest {
            let page = try await self.store.checkpoints(after: last, limit: Self.checkpointPage)
            guard let first = page.first, let end = page.last else { return }
            if verification.misses(before: first.number), let end = try await self.store.signatures().end {
                verification.follow(end)
            }
            for checkpoint in page where checkpoint.number <= latest { verification.take(checkpoint) }
            last = end.number
        }
    }

    /// Verifies what takes little time: the oldest checkpoint and the latest thousand, whether the chains reach as far
    /// as they say, and the oldest and the newest record. Returns the first thing that is wrong; `nil` for nothing.
    package func verifyEnds() async throws(GatewayError) -> Verdict? {
        let signatures = try await self.store.signatures()
        let heads = try await self.store.heads()
        var verification = self.verification(of: signatures, heads)
        if let oldest = signatures.oldest, let latest = signatures.latest {
            verification.take(oldest)
            let first = max(oldest.number, latest.number &- Self.checkpointPage)
            if first > oldest.number { verification.skip(to: first &+ 1) }
            try await self.takeCheckpoints(after: first, through: latest.number, &verification)
        }
        verification.finishCheckpoints(at: signatures.latest?.number ?? 0)
        for (index, head) in heads.enumerated() {
            guard head.writer == index + 1 else { return Self.missing(writer: index + 1) }
            if let failure = verification.failureAtBeginning(of: head.writer) { return failure }
        }
        if let verdict = verification.finding { return verdict }
        let filled = heads.filter { verification.beginning(of: $0.writer).sequence < $0.sequence }
        if let oldest = filled.first, let newest = filled.last {
            let first = verification.beginning(of: oldest.writer).sequence &+ 1
            for (head, sequence) in [(oldest, first), (newest, newest.sequence)] {
                if let failure = try await self.failure(at: sequence, of: head, verification) { return failure }
            }
        }
        return Self.unrecorded(signatures)
    }

    /// Returns the fault of one record of a chain, or `nil`.
    ///
    /// Old records are removed meanwhile, however often: the marker that stands in their stead is read at the same
    /// moment as the record. If it has moved beyond the place, the record behind it is checked instead.
    private func failure(
        at sequence: Int,
        of head: AuditHead,
        _ verification: AuditVerification
    ) async throws(GatewayError) -> Verdict? {
        let page = try await self.store.rows(of: head.writer, from: sequence, limit: 1)
        var place = AuditChain.Position(writer: head.writer, sequence: sequence)
        if let truncation = page.truncation, truncation.sequence >= sequence {
            guard verification.isGenuine(truncation) else {
                return .tampered(truncation.position, reason: AuditVerification.forgedTruncation)
            }
            let end = page.head?.sequence ?? head.sequence
            if truncation.sequence == end { return nil }
            guard truncation.sequence < end else {
                return .tampered(place, reason: AuditVerification.excessiveTruncation)
            }
            place.sequence = truncation.sequence + 1
        }
        guard let found = try page.readable().first, found.sequence == place.sequence else {
            return .tampered(place, reason: "the record is missing")
        }
        if place == head.position, found.hash != head.hash {
            return .tampered(place, reason: "the chain's end is not the recorded one")
        }
        return try await self.unlisted(among: [found])
    }

    /// Returns the fault of the first record that is in its chain and that an index does not lead to.
    private func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> Verdict? {
        try await self.store.unlisted(among: records)
            .map { .tampered($0, reason: "the record is stored, and look-ups by time or tenant do not find it") }
    }

    static func missing(writer: Int) -> Verdict {
        .tampered(AuditChain.Position(writer: writer, sequence: 1), reason: "a writer is missing")
    }

    /// The problem of a tenant without any record, as when all chains were emptied before they were signed.
    private static func unrecorded(_ signatures: AuditSignatures) -> Verdict? {
        signatures.unrecordedTenant.map {
            .tampered(
                AuditChain.Position(writer: 1, sequence: 1),
                reason: "the store has the tenant \($0), and no record of its making"
            )
        }
    }

    /// The first of some chains without an end whose writer is gone.
    ///
    /// The chains are looked at again after the process: one that ended in order meanwhile has closed its chain, and
    /// one that began has closed what it found.
    private func firstUnclean(
        _ open: Set<Int>,
        isLive: () throws(GatewayError) -> Bool,
        liveWriters: () async throws(GatewayError) -> Set<Int>
    ) async throws(GatewayError) -> Int? {
        if open.isEmpty { return nil }
        let isLive = try isLive()
        let written = try await liveWriters()
        var still = try await self.store.heads().filter { $0.state == .open }.map(\.writer)
        // Commands that work on the store while it is served add chains behind the live one, closed at once.
        if isLive { _ = still.popLast() }
        return still.first { open.contains($0) && !written.contains($0) }
    }

    /// The problem of the checkpoint after which a chain began, or `nil`.
    private func verdict(
        on number: Int,
        of writer: Int,
        after earlier: (writer: Int, number: Int)?,
        _ latest: Int
    ) async throws(GatewayError) -> Verdict? {
        if let earlier, number < earlier.number {
            // A row of checkpoints that was begun anew is shorter.
            let reason = "writer \(earlier.writer) began after it, and the later writer \(writer) before it was made"
            return .checkpointTampered(number: earlier.number, reason: reason)
        }
        guard number > latest else { return nil }
        // A gateway may have ended and another begun since the signatures were read.
        if try await self.store.checkpoints(after: number - 1, limit: 1).first != nil { return nil }
        return .checkpointTampered(number: number, reason: "it is missing, and writer \(writer) began after it")
    }

    private func strayWriter(_ heads: [AuditHead]) async throws(GatewayError) -> Int? {
        let known = Set(heads.map(\.writer))
        let stray = try await self.store.writersWithRecords().first { !known.contains($0) }
        guard let stray else { return nil }
        // A writer that started after the heads were read is no stranger.
        return try await self.store.heads().contains { $0.writer == stray } ? nil : stray
    }

    private func verification(of signatures: AuditSignatures, _ heads: [AuditHead]) -> AuditVerification {
        AuditVerification(
            signatures,
            heads,
            sealer: self.sealer,
            publicKey: self.publicKey,
            evidence: self.evidence
        )
    }

    private func walk(
        to head: AuditHead,
        _ verification: AuditVerification,
        progress: (_ rows: Int) -> Void
    ) async throws(GatewayError) -> Result<AuditWalker, Verdict> {
        var walker: AuditWalker
        do throws(Verdict) {
            walker = try verification.walker(to: head)
        } catch {
            return .failure(error)
        }
        var rows = 0
        while true {
            let truncation = walker.truncation
            let read = try await self.store.walk(&walker, limit: Self.page)
            if let moved = walker.truncation, moved != truncation, !verification.isGenuine(moved) {
                return .failure(.tampered(moved.position, reason: AuditVerification.forgedTruncation))
            }
            rows += read.count
            progress(rows)
            if walker.failure != nil { break }
            if let unlisted = try await self.unlisted(among: read) { return .failure(unlisted) }
            if read.count < Self.page { break }
        }
        do throws(Verdict) {
            try verification.finish(&walker)
        } catch {
            return .failure(error)
        }
        return .success(walker)
    }
}
