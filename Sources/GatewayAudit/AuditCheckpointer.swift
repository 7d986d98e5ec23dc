package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// Signs checkpoints of all chains, one after the other, and keeps them in the store.
///
/// One replica of a store signs, the leader; what others and commands add to the audit meanwhile is in its next
/// checkpoint. The store takes a checkpoint only behind all others, so that a leader that was paused finds out that it
/// is none.
package final class AuditCheckpointer: Sendable {
    private struct State {
        /// The latest genuine checkpoint, and what it says.
        var latest: (signed: SignedCheckpoint, content: AuditCheckpoint)?
        /// The last checkpoint that was removed.
        var removed = AuditCheckpoint.Link.none
        /// Checkpoints from before this moment are to be removed; `nil` for none.
        var limit: Timestamp?
        /// The number of the next checkpoint where the row does not hold: one is left out, so that the gap stays.
        var restart: Int?
        /// True if another replica may have made checkpoints since.
        var isOutdated = false
        /// Writers whose heads were found not to be genuine, so that each is logged once.
        var forged: Set<Int> = []
    }

    /// Checkpoints of one read, and about as many are removed at once.
    private static let page = 1_000

    private let store: any AuditStore
    private let signer: AuditSigner
    private let sealer: AuditSealer
    private let clock: any WallClock
    private let alarm: AuditAlarm
    private let lastCheckpoint: Meter
    private let failures: Counter
    private let logger: Logger
    private let state = Mutex(State())

    /// A checkpointer that has not looked at the store yet; call ``prepare()``.
    package init(
        store: any AuditStore,
        signer: AuditSigner,
        sealer: AuditSealer,
        clock: any WallClock,
        alarm: AuditAlarm = AuditAlarm(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.store, self.signer, self.sealer, self.clock) = (store, signer, sealer, clock)
        self.alarm = alarm
        self.lastCheckpoint = metrics.gauge(.auditLastCheckpoint)
        self.failures = metrics.counter(.auditCheckpointFailures)
        self.logger = logger
    }

    /// Finds the latest checkpoint, and makes the first where there is none; the latest one's number.
    ///
    /// A checkpoint that was changed is not continued: the next one skips a number behind all known ones, and takes
    /// nothing over from one that is not genuine.
    package func prepare() async throws(GatewayError) -> Int {
        // Before the checkpoints are read: a chain that begins meanwhile may follow one that is not among them.
        let claimed = try await self.latestClaim(try await self.store.truncations())
        let signatures = try await self.store.signatures()
        await self.checkEnds()
        let isWhole = self.isWhole(signatures, claimed: claimed)
        var (latest, restart) = (signatures.latest, nil as Int?)
        if !isWhole { (latest, restart) = try await self.remains(of: signatures, claimed: claimed) }
        let isGenuineEnd = signatures.end.map { self.signer.publicKey.isGenuine($0.signature, of: $0.text) } ?? false
        self.state.withLock { state in
            state.latest = latest.flatMap { signed in signed.content.map { (signed, $0) } }
            state.removed = isGenuineEnd ? signatures.end?.removed ?? .none : .none
            state.restart = restart
        }
        if let restart {
            self.alarm.raise()
            self.logger.error(
                "The latest checkpoint of the audit is not the one that was signed; audit verify tells more",
                metadata: [
                    "checkpoint": .stringConvertible(signatures.latest?.number ?? 0),
                    "next": .stringConvertible(restart),
                ]
            )
        }
        if isWhole, let latest {
            if let time = latest.content?.time { self.lastCheckpoint.set(time) }
            return latest.number
        }
        let now = self.clock.now()
        do throws(GatewayError) {
            try await self.make()
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
    /// The next checkpoint of this replica looks at the store first. A store that can't be read leaves the gauge as it
    /// is.
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
    @discardableResult
    package func checkpoint() async -> Bool {
        let isOutdated = self.state.withLock { $0.isOutdated }
        do throws(GatewayError) {
            if isOutdated {
                self.state.withLock { $0.isOutdated = false }
                _ = try await self.prepare()
            }
            // The checkpoint below covers everything that is stored by now.
            let now = self.clock.now()
            try await self.make()
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
            if let first, first.sequence == 1, case let number = first.record.afterCheckpoint, number > 0 {
                return number
            }
        }
        return 0
    }

    /// Tells an operator at once what ``AuditVerifier/verifyEnds()`` finds; nothing else comes of it.
    ///
    /// A gateway that no longer served would let anybody who can write to the store stop all sends, and prove no more.
    private func checkEnds() async {
        // Signatures are checked with the row.
        let verifier = AuditVerifier(store: self.store, sealer: nil)
        let found: AuditVerifier.Verdict?
        do throws(GatewayError) {
            found = try await verifier.verifyEnds()
        } catch {
            // Its users can't read it either, and report that.
            return
        }
        guard self.alarm.setEnds(found != nil) else { return }
        if let found {
            self.logger.error("The audit was changed; audit verify tells more", metadata: ["finding": "\(found)"])
        } else {
            self.logger.notice("Another look at the audit finds nothing wrong with its ends")
        }
    }

    /// Looks at the ends again while the last look found something.
    func lookAgain() async {
        if self.alarm.isRaisedByEnds { await self.checkEnds() }
    }

    /// Returns true if the latest checkpoint is the latest that there was, as far as it can be told.
    ///
    /// `claimed` is the latest checkpoint after which a chain is known to have begun, 0 for none. Only the row's end is
    /// looked at; verifiers and ``removable()`` look at what lies before it.
    private func isWhole(_ signatures: AuditSignatures, claimed: Int) -> Bool {
        let key = self.signer.publicKey
        let isEnd =
            if let latest = signatures.latest, let end = signatures.end {
                self.isGenuine(latest) && end.latest == AuditCheckpoint.Link(latest)
                    && key.isGenuine(end.signature, of: end.text)
            } else {
                signatures.isNew && signatures.end.map { key.isGenuine($0.signature, of: $0.text) } != false
            }
        return isEnd && claimed <= signatures.latest?.number ?? 0 && signatures.unrecordedTenant == nil
    }

    /// Looks through a row that isn't whole; returns its latest genuine checkpoint, and the number of the next one.
    ///
    /// That leaves one number out behind all that anything names, so that the gap stays visible.
    private func remains(
        of signatures: AuditSignatures,
        claimed: Int
    ) async throws(GatewayError) -> (latest: SignedCheckpoint?, next: Int) {
        var latest: SignedCheckpoint?
        var named = [claimed, signatures.end?.latest.number ?? 0].compactMap(Self.possible).reduce(0, max)
        var last = Int.min
        while true {
            let page = try await self.store.checkpoints(after: last, limit: Self.page)
            guard let end = page.last else { return (latest, named + 2) }
            for checkpoint in page {
                named = max(named, Self.possible(checkpoint.number) ?? 0)
                if self.isGenuine(checkpoint) { latest = checkpoint }
            }
            last = end.number
        }
    }

    /// A number that a gateway may have given to a checkpoint; `nil` for any other.
    private static func possible(_ number: Int) -> Int? { number < AuditCheckpoint.numberLimit ? number : nil }

    private func isGenuine(_ checkpoint: SignedCheckpoint) -> Bool {
        (try? AuditVerification.content(of: checkpoint, self.signer.publicKey)) != nil
    }

    /// Has checkpoints from before a moment removed with those that are made from now on.
    func remove(before limit: Timestamp) {
        self.state.withLock { $0.limit = limit }
    }

    /// Returns the last checkpoint that is to be removed; the latest one always stays.
    ///
    /// Changed checkpoints are evidence and stay: those that go, and the one behind them, must be genuine, each linked
    /// to the one before.
    private func removable() async throws(GatewayError) -> AuditCheckpoint.Link? {
        let (limit, latest) = self.state.withLock { ($0.limit, $0.latest?.signed.number ?? 0) }
        guard let limit else { return nil }
        var last = self.state.withLock { $0.removed }
        var removable: AuditCheckpoint.Link?
        var isOld = false
        for signed in try await self.store.checkpoints(after: last.number, limit: Self.page) {
            if isOld { removable = last }
            let content = try? AuditVerification.content(of: signed, self.signer.publicKey)
            guard let content, content.number == last.number + 1, content.previous == last.digest else {
                // A leader that was paused may meet what another one has removed or added.
                if let end = try await self.store.signatures().end, end.latest.number > latest {
                    throw GatewayError(.conflict, "Checkpoint \(end.latest.number) of the audit is there already")
                }
                self.alarm.raise()
                self.state.withLock { $0.limit = nil }
                self.logger.error(
                    "The audit's checkpoints are not what was signed, so no old ones are removed; audit verify tells more"
                )
                return nil
            }
            isOld = content.time < limit
            if !isOld { break }
            last = AuditCheckpoint.Link(signed)
        }
        if !isOld { self.state.withLock { $0.limit = nil } }
        return removable
    }

    /// One caller at a time: checkpoints follow each other.
    private func make() async throws(GatewayError) {
        let truncations = try await self.store.truncations()
        let heads = try await self.store.heads()
        let (latest, restart) = self.state.withLock { ($0.latest, $0.restart) }
        var next = self.next(heads: self.genuine(heads), truncations: truncations)
        if restart == nil, let latest, latest.content.says(sameAs: next) { return }
        next.number = restart ?? next.number
        let made = next
        let signed = try self.signer.sign(made)
        let removed = try await self.removable() ?? self.state.withLock { $0.removed }
        let end = try self.signer.end(at: AuditCheckpoint.Link(signed), removed: removed)
        try await self.store.append(signed, end: end)
        self.state.withLock { state in
            (state.latest, state.restart) = ((signed, made), nil)
            state.removed = removed
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

    /// Returns what the next checkpoint says, if the row holds.
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
        let latest = self.state.withLock { $0.latest }
        return AuditCheckpoint(
            number: (latest?.content.number ?? 0) + 1,
            time: self.clock.now(),
            previous: latest?.signed.digest ?? AuditCheckpoint.noDigest,
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
/// An alarm by a look at the ends of the chains is over when a later look finds nothing. Any other stays for as long as
/// the process runs: nothing looks at the same place again.
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

/// Gives the audit its checkpoints while the gateway runs, and a last one when all chains have ended.
///
/// It runs before the audit's writer, so that it ends after it. After each checkpoint a task of its own writes to the
/// second sink: a slow sink delays no checkpoint.
package struct AuditCheckpointService: Service {
    /// The time that the last checkpoint may take to reach the second sink; the next start delivers the rest.
    private static let lastDelivery = Duration.seconds(2)
    /// The longest time between two looks for the lead and for chains of dead replicas; checkpoints may be further
    /// apart.
    private static let leadInterval = Duration.seconds(10)

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

    /// Makes a checkpoint, if this replica leads, once what dead replicas left is closed.
    ///
    /// One that can't be made ends the lead: another replica may have been first.
    package func checkpoint() async {
        await self.checkpointer.lookAgain()
        if let leader = self.leader {
            guard await leader.leads() else { return await self.checkpointer.follow() }
        }
        let isMade = await self.checkpointer.checkpoint()
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
        // Lines that an earlier process left undelivered need not wait for a new checkpoint.
        continuation.yield(nil)
        let pause = self.leader == nil ? self.interval : min(self.interval, Self.leadInterval)
        // The first one without a wait: an interval may be long, and the audit of this start has begun.
        var due = Uptime.now
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            if Uptime.now >= due {
                due = .now + self.interval
                await self.checkpoint()
                continuation.yield(nil)
            } else {
                _ = await self.leader?.leads()
            }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
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
