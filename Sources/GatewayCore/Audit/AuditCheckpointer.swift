package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// Signs checkpoints of all chains, one after the other, and keeps them in the store.
///
/// One replica of a store signs, the leader; what others and commands add to the audit meanwhile is in its next checkpoint.
/// The store takes a checkpoint only behind all others, so that a leader that was paused finds out that it is none.
package final class AuditCheckpointer: Sendable {
    private struct State {
        /// The latest genuine checkpoint, and what it says.
        var latest: (signed: SignedCheckpoint, content: AuditCheckpoint)?
        /// The digest of the latest checkpoint that is kept for good.
        var anchor = AuditCheckpoint.noDigest
        /// The number of the next checkpoint where the row does not hold: one is left out, so that the gap stays.
        var restart: Int?
        /// Whether another replica may have made checkpoints since.
        var isOutdated = false
        /// Writers whose heads were found not to be genuine, so that each is logged once.
        var forged: Set<Int> = []
        /// Calls of ``lookAgain()`` while the last look at the ends had found something.
        var callsSinceLook = 0
    }

    /// Intervals between two looks while something is wrong, ten minutes by default: a look reads all checkpoints.
    static let lookInterval = 60

    private let store: any AuditStore
    private let signer: AuditSigner
    private let sealer: AuditSealer
    private let clock: any WallClock
    private let denseCount: Int
    private let keptCount: Int
    private let alarm: AuditAlarm
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
        alarm: AuditAlarm = AuditAlarm(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.store, self.signer, self.sealer, self.clock) = (store, signer, sealer, clock)
        (self.denseCount, self.keptCount, self.alarm) = (denseCount, max(keptCount, denseCount), alarm)
        self.lastCheckpoint = metrics.gauge(.auditLastCheckpoint)
        self.failures = metrics.counter(.auditCheckpointFailures)
        self.logger = logger
    }

    /// Finds the latest checkpoint, and makes the first where there is none; the latest one's number.
    ///
    /// A row that is not what was signed is not gone on with as if it were: the next checkpoint leaves out a number behind
    /// all that are known of, and takes nothing over from one that is not genuine.
    package func prepare() async throws(GatewayError) -> Int {
        // Before the checkpoints are read: a chain that begins meanwhile may follow one that is not among them.
        let claimed = try await self.latestClaim(try await self.store.truncations())
        let signatures = try await self.store.signatures()
        await self.checkEnds()
        let row = AuditCheckpointRow(signatures, claimed: claimed, self.signer.publicKey)
        let latest = row.latest
        self.state.withLock { state in
            state.latest = latest.flatMap { signed in signed.content.map { (signed, $0) } }
            state.anchor = row.anchor?.digest ?? AuditCheckpoint.noDigest
            state.restart = row.isWhole ? nil : row.next
        }
        if !row.isWhole {
            self.alarm.raise()
            self.logger.error(
                "The latest checkpoint of the audit is not the one that was signed; audit verify tells more",
                metadata: [
                    "checkpoint": .stringConvertible(signatures.checkpoints.last?.number ?? 0),
                    "next": .stringConvertible(row.next),
                ]
            )
        }
        if row.isWhole, let latest {
            if let time = latest.content?.time { self.lastCheckpoint.set(time) }
            return latest.number
        }
        let now = self.clock.now()
        do throws(GatewayError) {
            try await self.make(delivered: latest?.content?.delivered ?? 0)
        } catch {
            // Another replica was first, and leads.
            guard error.code == .conflict else { throw error }
            self.markOutdated()
            return try await self.store.checkpoints(after: latest?.number ?? 0, limit: 1).last?.number ?? 0
        }
        self.lastCheckpoint.set(now)
        return self.state.withLock { $0.latest?.signed.number ?? 0 }
    }

    /// Follows the replica that makes the checkpoints: its latest one in the store moves the gauge of this replica.
    ///
    /// The next checkpoint of this replica looks at the store first. A store that can't be read leaves the gauge as it is.
    package func follow() async {
        self.markOutdated()
        // The end of the process does not wait for a store that is away.
        if Task.isShuttingDownGracefully { return }
        try? await self.readLatest()
    }

    private func markOutdated() {
        self.state.withLock { $0.isOutdated = true }
    }

    /// Moves the gauge to the time of a new checkpoint, and to now where that one covers all that is stored.
    private func readLatest() async throws(GatewayError) {
        let now = self.clock.now()
        let truncations = try await self.store.truncations()
        let heads = try await self.store.heads()
        let known = self.state.withLock { $0.latest?.signed.number } ?? 0
        let unread = try await self.store.checkpoints(after: known, limit: .max)
        for signed in unread.reversed() {
            guard let content = try? AuditVerification.content(of: signed, self.signer.publicKey) else { continue }
            self.state.withLock { $0.latest = (signed, content) }
            self.lastCheckpoint.set(content.time)
            break
        }
        guard let latest = self.state.withLock({ $0.latest?.content }) else { return }
        let current = self.next(heads: self.genuine(heads), truncations: truncations)
        if latest.says(sameAs: current) { self.lastCheckpoint.set(now) }
    }

    /// Makes a checkpoint when there is something new; whether all that is stored is under one. Why not is logged and
    /// counted.
    ///
    /// The second sink holds checkpoints up to `delivered`: 0 for none; `nil` when that is not known, so that what the
    /// checkpoint before says still holds.
    @discardableResult
    package func checkpoint(delivered: Int?) async -> Bool {
        let isOutdated = self.state.withLock { $0.isOutdated }
        do throws(GatewayError) {
            if isOutdated {
                self.state.withLock { $0.isOutdated = false }
                _ = try await self.prepare()
            }
            // What is stored by this moment is seen below.
            let now = self.clock.now()
            try await self.make(delivered: delivered)
            self.lastCheckpoint.set(now)
            return true
        } catch {
            if isOutdated || error.code == .conflict { self.markOutdated() }
            self.failures.increment()
            self.logger.error("The audit can't be given a checkpoint", metadata: ["cause": "\(error.message)"])
            return false
        }
    }

    /// The checkpoint after which the latest chain began that says so; 0 for none.
    private func latestClaim(_ truncations: [AuditTruncation]) async throws(GatewayError) -> Int {
        let shortened = Set(truncations.map(\.writer))
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
        let found: AuditVerifier.Verdict?
        do throws(GatewayError) {
            found = try await verifier.verifyEnds()
        } catch {
            // What can't be read here can't be read by those who need it either, and they say so.
            return
        }
        guard self.alarm.setEnds(found != nil) else { return }
        if let found {
            self.logger.error("The audit was changed; audit verify tells more", metadata: ["finding": "\(found)"])
        } else {
            self.logger.notice("Another look at the audit finds nothing wrong with its ends")
        }
    }

    /// Looks at the ends again, at each so many calls, while the last look found something.
    func lookAgain() async {
        guard self.alarm.isRaisedByEnds else { return }
        let isDue = self.state.withLock { state in
            state.callsSinceLook += 1
            return state.callsSinceLook.isMultiple(of: Self.lookInterval)
        }
        if isDue { await self.checkEnds() }
    }

    /// Whether the stored checkpoints are those that were made, and the chains what they say.
    ///
    /// It reads them all, so it is asked only before old ones are removed.
    private func holds(_ heads: [AuditHead]) async throws(GatewayError) -> Bool {
        let signatures = try await self.store.signatures()
        // Each names those before it by their digests, so the others' signatures need not be checked.
        var verification = AuditVerification(signatures, sealer: nil, publicKey: nil, evidence: AuditEvidence())
        verification.take(heads)
        let latest = self.state.withLock { $0.latest?.signed }
        if verification.finding == nil, signatures.checkpoints.last == latest { return true }
        if let latest, let last = signatures.checkpoints.last, last.number > latest.number,
            (try? AuditVerification.content(of: last, self.signer.publicKey)) != nil
        {
            // This replica was paused. If nobody leads, the look before its next checkpoint tells.
            throw GatewayError(.conflict, "Checkpoint \(last.number) of the audit is there already")
        }
        self.alarm.raise()
        self.logger.error(
            "The audit's checkpoints are not what was signed, so no old ones are removed; audit verify tells more"
        )
        return false
    }

    /// One caller at a time: checkpoints follow each other.
    private func make(delivered: Int?) async throws(GatewayError) {
        let truncations = try await self.store.truncations()
        let heads = try await self.store.heads()
        let (latest, restart) = self.state.withLock { ($0.latest, $0.restart) }
        var next = self.next(heads: self.genuine(heads), truncations: truncations)
        if restart == nil, let latest, latest.content.says(sameAs: next) { return }
        next.number = restart ?? next.number
        next.delivered = delivered ?? next.delivered
        // What was tampered with is evidence; only from a row that holds, checkpoints are removed.
        var thins = next.number.isMultiple(of: AuditCheckpoint.anchorInterval)
        if thins { thins = try await self.holds(heads) }
        if thins {
            next.denseFrom = max(next.denseFrom, next.number - self.denseCount)
            let step = AuditCheckpoint.anchorInterval
            next.oldest = max(next.oldest, (next.number - self.keptCount) / step * step)
        }
        let made = next
        let signed = try self.signer.sign(made)
        try await self.store.append(signed, thinnedBy: thins ? made : nil, end: try self.signer.end(at: signed))
        self.state.withLock { state in
            (state.latest, state.restart) = ((signed, made), nil)
            if made.number.isMultiple(of: AuditCheckpoint.anchorInterval) {
                state.anchor = signed.digest
            }
        }
    }

    /// Heads that somebody else has written must not be signed: that would make them genuine.
    private func genuine(_ heads: [AuditHead]) -> [AuditHead] {
        heads.filter { head in
            if self.sealer.isGenuine(head) { return true }
            if self.state.withLock({ $0.forged.insert(head.writer).inserted }) {
                self.alarm.raise()
                self.logger.error(
                    "The seal on the end of an audit chain is not genuine; checkpoints leave the chain out",
                    metadata: ["writer": .stringConvertible(head.writer)]
                )
            }
            return false
        }
    }

    /// What the next checkpoint says, if the row holds and the second sink has no more than before.
    private func next(heads: [AuditHead], truncations: [AuditTruncation]) -> AuditCheckpoint {
        var settled = AuditSettledEnds()
        for head in heads where head.writer == settled.writer + 1 && head.state != .open { settled.append(head) }
        var removed = 0
        for (truncation, head) in zip(truncations, heads)
        where truncation.writer == removed + 1 && head.writer == truncation.writer
            && head.sequence == truncation.sequence && truncation.writer <= settled.writer
        {
            removed = truncation.writer
        }
        let (latest, anchor) = self.state.withLock { ($0.latest, $0.anchor) }
        return AuditCheckpoint(
            number: (latest?.content.number ?? 0) + 1,
            time: self.clock.now(),
            previous: latest?.signed.digest ?? AuditCheckpoint.noDigest,
            anchor: anchor,
            oldest: latest?.content.oldest ?? 1,
            denseFrom: latest?.content.denseFrom ?? 1,
            delivered: latest?.content.delivered ?? 0,
            settledWriter: settled.writer,
            settledDigest: settled.digest,
            removedWriter: removed,
            heads: heads.filter { $0.writer > settled.writer }.map(\.unsealed),
            truncations: truncations.filter { $0.writer > removed }.map(\.chain)
        )
    }
}

/// The gauge that says that the stored audit is not what was written.
///
/// An alarm by a look at the ends of the chains is over when a later look finds nothing. Any other stays for as long as the
/// process runs: nothing looks at the same place again.
package final class AuditAlarm: Sendable {
    private struct State {
        var isRaisedByEnds = false
        var isRaisedForGood = false
    }

    private let gauge: Meter
    private let state = Mutex(State())

    package init(metrics: GatewayMetrics = GatewayMetrics()) {
        self.gauge = metrics.gauge(.auditChanged)
        self.gauge.set(0)
    }

    var isRaisedByEnds: Bool { self.state.withLock { $0.isRaisedByEnds } }

    func raise() {
        self.state.withLock { state in
            state.isRaisedForGood = true
            self.gauge.set(1)
        }
    }

    /// Takes what a look at the ends has found; true if the look before found otherwise.
    func setEnds(_ isRaised: Bool) -> Bool {
        self.state.withLock { state in
            defer { state.isRaisedByEnds = isRaised }
            self.gauge.set(isRaised || state.isRaisedForGood ? 1 : 0)
            return state.isRaisedByEnds != isRaised
        }
    }
}

/// How the row of stored checkpoints stands, to go on with it.
///
/// Pure. It asks the row's end alone; what lies before it is asked when some of it is to be removed, and by verifiers.
private struct AuditCheckpointRow {
    let latest: SignedCheckpoint?
    /// Whether that is the latest that there was, as far as it can be told.
    let isWhole: Bool
    /// The number of the checkpoint that is to follow.
    ///
    /// In a row that isn't whole one number is left out behind all that are known of, so that the row shows it for as
    /// long as it is kept.
    let next: Int
    /// The genuine checkpoint that is the last before ``next`` of those that are kept for good.
    let anchor: SignedCheckpoint?

    /// Looks at a row; `claimed` is the latest checkpoint after which a chain is known to have begun, 0 for none.
    init(_ signatures: AuditSignatures, claimed: Int, _ publicKey: AuditPublicKey) {
        func isGenuine(_ checkpoint: SignedCheckpoint) -> Bool {
            publicKey.isGenuine(checkpoint.signature, of: checkpoint.text)
                && checkpoint.content?.number == checkpoint.number
        }
        let latest = signatures.checkpoints.last(where: isGenuine)
        let last = latest?.number ?? 0
        let isGenuineEnd = signatures.end.map { publicKey.isGenuine($0.signature, of: $0.text) }
        let isEnd =
            if let latest, let end = signatures.end {
                latest == signatures.checkpoints.last && end.number == last && end.digest == latest.digest
                    && isGenuineEnd == true
            } else {
                signatures.isNew && isGenuineEnd != false
            }
        self.latest = latest
        self.isWhole = isEnd && claimed <= last && signatures.unrecordedTenant == nil
        if self.isWhole {
            self.next = last + 1
        } else {
            let named = signatures.checkpoints.map(\.number) + [signatures.end?.number ?? 0, claimed]
            self.next = (named.filter { $0 < AuditCheckpoint.numberLimit } + [last]).reduce(0, max) + 2
        }
        let anchorNumber = AuditCheckpoint.anchorNumber(before: self.next)
        self.anchor = signatures.checkpoints.last { $0.number == anchorNumber }.flatMap { isGenuine($0) ? $0 : nil }
    }
}

/// Gives the audit its checkpoints while the gateway runs, and a last one when all chains have ended.
///
/// It runs before the audit's writer, so that it ends after it. What the second sink lacks follows each checkpoint, in a
/// task of its own: a slow sink delays no checkpoint.
package struct AuditCheckpointService: Service {
    /// How long the last checkpoint may take to reach the second sink; what is left then is delivered after the next
    /// start.
    private static let lastDelivery = Duration.seconds(2)

    private let checkpointer: AuditCheckpointer
    private let feeder: AuditSinkFeeder?
    private let interval: Duration
    private let leader: AuditLeader?

    /// A service that leads always, or where other replicas share the store, as a leader of theirs.
    package init(
        checkpointer: AuditCheckpointer,
        feeder: AuditSinkFeeder?,
        interval: Duration,
        leader: AuditLeader? = nil,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        metrics.gauge(.auditCheckpointInterval).set(interval / .seconds(1))
        (self.checkpointer, self.feeder, self.interval, self.leader) = (checkpointer, feeder, interval, leader)
    }

    /// What checkpoints say of the second sink: 0 without one, `nil` until the sink was asked.
    private var delivered: Int? {
        guard let feeder = self.feeder else { return 0 }
        return feeder.delivered
    }

    /// Makes a checkpoint, if this replica leads, once what dead replicas left is closed.
    ///
    /// One that can't be made ends the lead: another replica may have been first.
    package func checkpoint() async {
        await self.checkpointer.lookAgain()
        if let leader = self.leader {
            guard await leader.leads() else { return await self.checkpointer.follow() }
        }
        let isMade = await self.checkpointer.checkpoint(delivered: self.delivered)
        if !isMade { await self.leader?.leadership.resign() }
    }

    package func run() async throws {
        let (wake, continuation) = AsyncStream<Duration?>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (life, lifeContinuation) = AsyncStream.makeStream(of: Void.self)
        // Not awaited but by ``life``: a sink that hangs must not keep the process from ending.
        let deliveries = Task {
            for await limit in wake { await self.feeder?.deliver(within: limit) }
            lifeContinuation.finish()
        }
        // What an earlier process left undelivered need not wait for something new.
        continuation.yield(nil)
        // The first one without a wait: an interval may be long, and the audit of this start has begun.
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            await self.checkpoint()
            continuation.yield(nil)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: self.interval) }
        }
        self.feeder?.stop()
        await self.checkpoint()
        await self.leader?.leadership.resign()
        continuation.yield(Self.lastDelivery)
        continuation.finish()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in life {} }
            // As long for the piece that the sink is at as for the last delivery.
            group.addTask { try? await Task.sleep(for: Self.lastDelivery * 2) }
            await group.next()
            group.cancelAll()
        }
        deliveries.cancel()
    }
}
