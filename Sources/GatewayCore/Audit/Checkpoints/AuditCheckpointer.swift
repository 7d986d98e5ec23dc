package import Logging
import Metrics
import Synchronization

/// Signs checkpoints of all chains, one after the other, and keeps them in the store.
///
/// One gateway serves a store, so it is the one that signs; what commands add to the audit meanwhile is in its next
/// checkpoint.
package final class AuditCheckpointer: Sendable {
    private struct State {
        /// The latest genuine checkpoint, and what it says; `nil` in what says nothing that can be read.
        var latest: (signed: SignedCheckpoint, content: AuditCheckpoint?)?
        /// The digest of the latest checkpoint that is kept for good.
        var anchor: (number: Int, digest: [UInt8])?
        /// The number of the next checkpoint where the row does not hold: one is left out, so that the gap stays.
        var restart: Int?
        /// Writers whose heads were found not to be genuine, so that each is logged once.
        var forged: Set<Int> = []
    }

    private let store: any AuditStore
    private let signer: AuditSigner
    private let sealer: AuditSealer
    private let clock: any WallClock
    private let denseCount: Int
    private let keptCount: Int
    private let changed: Meter
    private let lastCheckpoint: Meter
    private let failures: Counter
    private let logger: Logger
    private let state = Mutex(State())

    /// A checkpointer that has not looked at the store yet; call ``prepare()``.
    ///
    /// Of the latest checkpoints `denseCount` are all kept, a multiple of the anchors' interval; the oldest one that is kept
    /// is at most `keptCount` back.
    package init(
        store: any AuditStore,
        signer: AuditSigner,
        sealer: AuditSealer,
        clock: any WallClock,
        denseCount: Int = AuditCheckpoint.denseCount,
        keptCount: Int,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        self.store = store
        self.signer = signer
        self.sealer = sealer
        self.clock = clock
        self.denseCount = denseCount
        self.keptCount = max(keptCount, denseCount)
        self.changed = metrics.gauge(.auditChanged)
        self.changed.set(0)
        self.lastCheckpoint = metrics.gauge(.auditLastCheckpoint)
        self.failures = metrics.counter(.auditCheckpointFailures)
        self.logger = logger
    }

    /// Finds the latest checkpoint, and makes the first where there is none.
    ///
    /// A row that is not what was signed is not gone on with as if it were: the next checkpoint leaves out a number behind
    /// all that are known of, and takes nothing over from one that is not genuine.
    ///
    /// - Returns: the latest checkpoint's number.
    /// - Throws: `storeUnavailable`.
    package func prepare() async throws(GatewayError) -> Int {
        let ledger = try await self.store.ledger()
        await self.checkEnds()
        let row = AuditCheckpointRow(ledger, claimed: try await self.latestClaim(ledger), self.signer.publicKey)
        let latest = row.latest
        self.state.withLock { state in
            state.latest = latest.map { ($0, $0.content) }
            state.anchor = row.anchor.map { ($0.number, $0.digest) }
            state.restart = row.isWhole ? nil : row.next
        }
        if !row.isWhole {
            self.changed.set(1)
            self.logger.error(
                "The latest checkpoint of the audit is not the one that was signed; audit verify tells more",
                metadata: ["checkpoint": "\(ledger.checkpoints.last?.number ?? 0)", "next": "\(row.next)"]
            )
        }
        if row.isWhole, let latest {
            if let time = latest.content?.time { self.lastCheckpoint.set(time) }
            return latest.number
        }
        let now = self.clock.now()
        _ = try await self.make(delivered: latest?.content?.delivered ?? 0)
        self.lastCheckpoint.set(now)
        return self.state.withLock { $0.latest?.signed.number ?? 0 }
    }

    /// Makes a checkpoint when there is something new.
    ///
    /// - Parameter delivered: the latest checkpoint that the second sink holds; 0 for none, `nil` when that is not known,
    ///   so that what the checkpoint before says still holds.
    /// - Returns: whether all that is stored is under a checkpoint; why not is logged and counted.
    package func checkpoint(delivered: Int?) async -> Bool {
        do {
            // What is stored by this moment is seen below.
            let now = self.clock.now()
            _ = try await self.make(delivered: delivered)
            self.lastCheckpoint.set(now)
            return true
        } catch {
            self.failures.increment()
            self.logger.error("The audit can't be given a checkpoint", metadata: ["cause": "\(error.message)"])
            return false
        }
    }

    /// The checkpoint after which the latest chain began that says so; 0 for none.
    private func latestClaim(_ ledger: AuditLedger) async throws(GatewayError) -> Int {
        let shortened = Set(ledger.cuts.map(\.writer))
        for head in try await self.store.heads().reversed()
        where !shortened.contains(head.writer) && self.sealer.isGenuine(head) {
            // A record that can't be read says nothing, and keeps no gateway from starting.
            let first = try? await self.store.records(of: head.writer, after: 0, limit: 1).first
            if let first, first.sequence == 1,
                let number = AuditCheckpoint.number(inOpeningNote: first.record.object)
            {
                return number
            }
        }
        return 0
    }

    /// Tells an operator at once what ``AuditVerifier/verifyEnds()`` finds; nothing else comes of it.
    ///
    /// A gateway that no longer served would let anybody who can write to the store stop all sends, and prove no more.
    private func checkEnds() async {
        // The signatures of thousands of checkpoints take seconds; the latest one's are checked with the row.
        let verifier = AuditVerifier(store: self.store, sealer: nil)
        // What can't be read here can't be read by those who need it either, and they say so.
        guard let verdict = try? await verifier.verifyEnds() else { return }
        self.changed.set(1)
        self.logger.error("The audit was changed; audit verify tells more", metadata: ["finding": "\(verdict)"])
    }

    /// Whether the stored checkpoints are those that were made, and the chains what they say.
    ///
    /// It reads them all, so it is asked only before old ones are removed.
    private func holds(_ heads: [AuditHead]) async throws(GatewayError) -> Bool {
        let ledger = try await self.store.ledger()
        // Each names those before it by their digests, so the others' signatures need not be checked.
        var check = LedgerCheck(ledger, publicKey: nil, witness: AuditWitness())
        check.compare(with: heads)
        let latest = self.state.withLock { $0.latest?.signed }
        if check.verdict == nil, ledger.checkpoints.last == latest { return true }
        self.changed.set(1)
        self.logger.error(
            "The audit's checkpoints are not what was signed, so no old ones are removed; audit verify tells more"
        )
        return false
    }

    /// One caller at a time: checkpoints follow each other.
    private func make(delivered: Int?) async throws(GatewayError) -> Bool {
        let cuts = try await self.store.cuts()
        let heads = try await self.store.heads()
        let (latest, anchor, restart) = self.state.withLock { ($0.latest, $0.anchor, $0.restart) }
        var next = self.content(heads: self.genuine(heads), cuts: cuts)
        if restart == nil, let content = latest?.content, content.says(sameAs: next) { return false }
        next.number = restart ?? (latest?.signed.number ?? 0) + 1
        next.delivered = delivered ?? latest?.content?.delivered ?? 0
        if let latest { next.previous = latest.signed.digest }
        if let anchor { next.anchor = anchor.digest }
        next.oldest = latest?.content?.oldest ?? 1
        next.denseFrom = latest?.content?.denseFrom ?? 1
        // What was tampered with is evidence; only from a row that holds, checkpoints are removed.
        var thins = next.number.isMultiple(of: AuditCheckpoint.anchorInterval)
        if thins { thins = try await self.holds(heads) }
        if thins {
            next.denseFrom = max(next.denseFrom, next.number - self.denseCount)
            let step = AuditCheckpoint.anchorInterval
            next.oldest = max(next.oldest, (next.number - self.keptCount) / step * step)
        }
        let signed = try self.signer.sign(next)
        let made = next
        try await self.store.append(signed, thinnedBy: thins ? made : nil, end: try self.signer.end(at: signed))
        self.state.withLock { state in
            (state.latest, state.restart) = ((signed, made), nil)
            if made.number.isMultiple(of: AuditCheckpoint.anchorInterval) {
                state.anchor = (made.number, signed.digest)
            }
        }
        return true
    }

    /// Heads that somebody else has written must not be signed: that would make them genuine.
    private func genuine(_ heads: [AuditHead]) -> [AuditHead] {
        heads.filter { head in
            if self.sealer.isGenuine(head) { return true }
            if self.state.withLock({ $0.forged.insert(head.writer).inserted }) {
                self.changed.set(1)
                self.logger.error(
                    "The seal on the end of an audit chain is not genuine; checkpoints leave the chain out",
                    metadata: ["writer": "\(head.writer)"]
                )
            }
            return false
        }
    }

    private func content(heads: [AuditHead], cuts: [AuditCut]) -> AuditCheckpoint {
        var settled = AuditSettledEnds()
        for head in heads where head.writer == settled.writer + 1 && head.state != .open { settled.append(head) }
        var removed = 0
        for (cut, head) in zip(cuts, heads)
        where cut.writer == removed + 1 && head.writer == cut.writer && head.sequence == cut.sequence
            && cut.writer <= settled.writer
        {
            removed = cut.writer
        }
        let zeros = [UInt8](repeating: 0, count: 32)
        return AuditCheckpoint(
            number: 1,
            time: self.clock.now(),
            previous: zeros,
            anchor: zeros,
            oldest: 1,
            denseFrom: 1,
            delivered: 0,
            settledWriter: settled.writer,
            settledDigest: settled.digest,
            removedWriter: removed,
            heads: heads.filter { $0.writer > settled.writer }.map { AuditCheckpoint.Head($0) },
            cuts: cuts.filter { $0.writer > removed }
                .map { AuditCheckpoint.Cut(writer: $0.writer, sequence: $0.sequence, hash: $0.hash) }
        )
    }
}
