import Crypto
package import FCMModel
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// A caller's name for a send. A request that is repeated with it never sends twice.
package struct IdempotencyKey: Sendable, Hashable {
    /// The most bytes that a key may have.
    package static let maxBytes = 255

    /// The key's SHA-256. The key itself is not kept.
    package let digest: [UInt8]

    /// Takes 1 to 255 printable ASCII characters. Returns `nil` for anything else.
    package init?(_ bytes: [UInt8]) {
        guard (1...Self.maxBytes).contains(bytes.count), bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            return nil
        }
        self.digest = SHA256.hash(data: bytes).bytes
    }

    /// The key of a slice's round.
    package init(of slice: Batch.Claim) {
        self.digest = SHA256.hash(data: Array("\(slice.batch)/\(slice.chunk)/\(slice.round)".utf8)).bytes
    }
}

/// A request with an idempotency key.
package struct IdempotentRequest: Sendable {
    /// The routes that accept a key. Each has its own keys. `messages` is the REST API's.
    package enum Route: String, Sendable, Hashable, CaseIterable {
        case messages, legacy, v1
        /// The slices of batches. Their records are kept until the slice is recorded, and no quota counts them.
        case batch
    }

    let key: IdempotencyKey
    let route: Route
    /// A digest of method, path, format and decoded message, which tells different requests with the same key apart.
    let digest: [UInt8]
    let slice: Batch.Claim?

    /// Takes a request as it arrived. The query is left out, because it means nothing to a send.
    ///
    /// The format is that of the request, which decides the response's. The target holds all recipients that the caller
    /// named, also those that nothing is sent to.
    package init(
        key: IdempotencyKey,
        route: Route,
        format: LegacyFormat = .json,
        method: String,
        path: [UInt8],
        target: Target,
        message: Message
    ) {
        (self.key, self.route, self.slice) = (key, route, nil)
        var digest = MessageDigest()
        digest.add(method)
        digest.add(String(decoding: path.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self))
        digest.add(format == .form ? "form" : "json")
        digest.add(target)
        digest.add(message)
        self.digest = digest.finish()
    }

    /// The send of a slice. Its digest covers the stored bytes of message and recipients.
    init(_ slice: Batch.Claim, digest: [UInt8]) {
        (self.key, self.route, self.slice) = (IdempotencyKey(of: slice), .batch, slice)
        self.digest = digest
    }
}

/// Makes each send with an idempotency key once, and gives every repeat the same answer (decision 0018).
///
/// A request that arrives while its key is in use is refused: this process keeps its running sends in memory, and those
/// of other replicas hold a ``Lease``. An open record without a lease was left by a process that ended. The next repeat
/// continues it (``SendReservation``).
///
/// Sends belong to this service. They continue when their caller is gone, and begin only after ``run()``.
package final class IdempotentSends: Service {
    /// The answer to a request with an idempotency key.
    package enum Answer: Sendable {
        /// The first answer. Replays return the same reply.
        ///
        /// `isKept` is true if the reply is stored, or nothing has left.
        case sent(SendOutcome, Reply, isKept: Bool)
        /// The reply of the first answer.
        case replayed(Reply)
        /// Nothing was sent, spent or recorded.
        case refused(Refusal)
    }

    /// An event in the life of an idempotency key, as it is counted.
    enum Event: String, CaseIterable {
        /// The send was answered for the first time, and the answer is stored.
        case fresh
        /// The stored answer was returned again.
        case replay
        /// A different request used the key before.
        case conflict
        /// The first request is still running.
        case inProgress = "in_progress"
        /// The send of another process was continued.
        case resumed
        /// The answer holds a recipient whose outcome is unknown.
        case unknown
        /// Nothing was sent, and the key can be used again.
        case freed
        /// An answer was dropped before its expiry to make room.
        case evicted
        /// The store failed to read or write a record.
        case failed
    }

    /// Times and bounds of sends with a key.
    package struct Configuration: Sendable {
        /// The time for which a repeat is recognised, from the first use of its key.
        package var lifetime = Duration.seconds(86_400)
        /// The number of recipients that one mark covers, where each recipient is a call of its own.
        package var startsPerMark = 200
        /// The time between two purges of expired records.
        package var purgeInterval = Duration.seconds(60)
        /// The most records that one transaction drops, so that other writers never wait long.
        package var purgeBatch = 500

        package init() {}
    }

    /// Renders the outcome of a send as the reply that replays return.
    package typealias Rendering = @Sendable (SendOutcome) -> Reply

    /// A send on its way to the service.
    private struct Job: Sendable {
        let command: SendCommand
        let identity: IdempotencyRecord.Identity
        let fingerprint: [UInt8]
        let executor: (any TaskExecutor)?
        let render: Rendering
        let slice: Batch.Claim?
        let pace: SendReservation.Pace?
        let continuation: CheckedContinuation<Answer, Never>
    }

    private struct State {
        /// The fingerprints of the sends that run.
        var running: [IdempotencyRecord.Identity: [UInt8]] = [:]
        /// The reservations whose leases must be renewed. Empty where there are no leases.
        var leased: [IdempotencyRecord.Identity: SendReservation] = [:]
        /// The time by which keys expire, once the predecessor's mark was read.
        var time: IdempotencyTime?
    }

    private let pipeline: SendPipeline
    private let store: any IdempotencyStore
    private let writer: SendReservation.Writer
    /// Look-ups share a read of the store as changes share a transaction: a read costs as much as the rest of a send.
    private let reader: GroupCommitWriter<IdempotencyRecord.Identity, IdempotencyRecord.Found>
    private let clock: any WallClock
    private let uptime: @Sendable () -> Uptime
    private let configuration: Configuration
    private let leases: LeaseTerms?
    private let leaseCounters: Lease.Counters?
    private let counters: [Event: Counter]
    private let outage: OutageLog
    private let logger: Logger
    private let state = Mutex(State())
    private let jobs = AsyncStream.makeStream(of: Job.self)
    private let hasRun = Atomic(false)

    /// Sends by a pipeline.
    ///
    /// The uptime measures elapsed time, however the clock is set. Replicas that share the store need the leases.
    package init(
        pipeline: SendPipeline,
        store: any IdempotencyStore,
        clock: any WallClock,
        uptime: @escaping @Sendable () -> Uptime = { .now },
        configuration: Configuration = Configuration(),
        leases: LeaseTerms? = nil,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.pipeline, self.store) = (pipeline, store)
        self.writer = SendReservation.Writer(
            changesPerTransaction: 500,
            transaction: { (changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] in
                try await store.apply(changes)
            }
        )
        self.reader = GroupCommitWriter(
            changesPerTransaction: 500,
            transaction: { (identities: [IdempotencyRecord.Identity]) async throws(GatewayError) in
                try await store.records(of: identities)
            }
        )
        (self.clock, self.uptime, self.configuration) = (clock, uptime, configuration)
        self.leases = leases
        self.leaseCounters = leases.map { _ in Lease.Counters(.request, metrics) }
        self.counters = metrics.counters(.idempotency, by: Event.self)
        self.outage = OutageLog(
            "Records of idempotency keys can't be read or written",
            end: "Records of idempotency keys are read and written again",
            logger
        )
        self.logger = logger
    }

    /// Sends a message unless its key was used before.
    ///
    /// The work runs on the executor. `render` renders the reply, which replays return as well.
    package func send(
        _ command: SendCommand,
        once request: IdempotentRequest,
        on executor: (any TaskExecutor)?,
        pace: SendReservation.Pace? = nil,
        render: @escaping Rendering
    ) async -> Answer {
        let profile = command.principal.profile
        // The outcomes of a slice may be stored from before its key lost a right.
        guard request.slice != nil || self.pipeline.refusal(of: command) == nil else {
            // A caller without the right to send learns nothing of earlier sends either.
            let outcome = await self.pipeline.send(command)
            return .sent(outcome, render(outcome), isKept: true)
        }
        let identity = IdempotencyRecord.Identity(request, of: profile)
        let fingerprint = IdempotencySealer.fingerprint(of: request, identity, profile)
        do { try self.enter(identity, fingerprint) } catch { return .refused(error) }
        return await withCheckedContinuation { continuation in
            let job = Job(
                command: command,
                identity: identity,
                fingerprint: fingerprint,
                executor: executor,
                render: render,
                slice: request.slice,
                pace: pace,
                continuation: continuation
            )
            guard case .terminated = self.jobs.continuation.yield(job) else { return }
            self.end(job, .refused(Refusal(.overloaded, "The gateway is shutting down")))
        }
    }

    /// Sends to the recipients of a batch's slice. Returns their outcomes, which are known to be kept, or `nil` if another
    /// process works on the slice or the store failed.
    func send(
        _ command: SendCommand,
        slice: Batch.Claim,
        digest: [UInt8],
        pace: SendReservation.Pace
    ) async -> [RecipientOutcome]? {
        let count = command.recipientCount
        let answer = await self.send(command, once: IdempotentRequest(slice, digest: digest), on: nil, pace: pace) {
            Reply(bytes: SendReservation.Progress($0.result.outcomesOfSlice(count: count)).bytes)
        }
        let lost = Array(repeating: RecipientOutcome.rejected(.outcomeUnknown), count: count)
        switch answer {
        case .sent(let outcome, _, let isKept):
            // A record that was kept names no recipient that another process has sent to.
            return isKept && !outcome.result.isInProgress ? outcome.result.outcomesOfSlice(count: count) : nil
        case .replayed(let reply):
            return SendReservation.Progress(reply.bytes, count: count)?.results() ?? lost
        case .refused(let refusal):
            return refusal.code.freesKey ? nil : lost
        }
    }

    // MARK: Running sends

    private func enter(_ identity: IdempotencyRecord.Identity, _ fingerprint: [UInt8]) throws(Refusal) {
        let running = self.state.withLock { state -> [UInt8]? in
            if let running = state.running[identity] { return running }
            state.running[identity] = fingerprint
            return nil
        }
        guard let running else { return }
        throw running == fingerprint ? self.inProgress() : self.conflict()
    }

    private func inProgress() -> Refusal {
        self.counters[.inProgress]?.increment()
        return Refusal(.idempotencyInProgress, retryAfter: 1)
    }

    private func end(_ job: Job, _ answer: Answer) {
        self.state.withLock { state in
            state.running[job.identity] = nil
            state.leased[job.identity] = nil
        }
        job.continuation.resume(returning: answer)
    }

    private func conflict() -> Refusal {
        self.counters[.conflict]?.increment()
        return Refusal(.idempotencyConflict)
    }

    /// Makes sends until shutdown, then finishes those it has accepted.
    ///
    /// Runs once. Failures of the store are reported by metric and log.
    package func run() async throws {
        precondition(!self.hasRun.exchange(true, ordering: .relaxed), "Sends with idempotency keys are served once")
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = await self.writer.run() }
            group.addTask { _ = await self.reader.run() }
            group.addTask { await self.purgeRegularly() }
            if let leases = self.leases { group.addTask { await self.renewRegularly(leases.renewalInterval) } }
            await withGracefulShutdownHandler {
                await withDiscardingTaskGroup { sends in
                    for await job in self.jobs.stream {
                        sends.addTask(executorPreference: job.executor) { await self.perform(job) }
                    }
                }
            } onGracefulShutdown: {
                self.jobs.continuation.finish()
            }
            self.writer.close()
            self.reader.close()
            group.cancelAll()
        }
    }

    /// Renews the leases of running sends, also while the last sends end.
    private func renewRegularly(_ interval: Duration) async {
        while (try? await Task.sleep(for: interval)) != nil { await self.renewLeases() }
    }

    /// Renews the leases that are due.
    package func renewLeases() async {
        let leased = self.state.withLock { Array($0.leased.values) }
        await withDiscardingTaskGroup { group in
            for reservation in leased { group.addTask { await reservation.renewLease() } }
        }
    }

    // MARK: Sending

    private func perform(_ job: Job) async {
        do throws(GatewayError) {
            self.end(job, try await self.answer(to: job))
        } catch {
            self.fail(error)
            self.end(job, .refused(.unkeepable))
        }
    }

    private func answer(to job: Job) async throws(GatewayError) -> Answer {
        let now = try await self.time()
        guard let stored = try await self.reader.commit(job.identity).get(), stored.record.expiresAt > now else {
            return await self.begin(job, at: now)
        }
        guard stored.record.fingerprint == job.fingerprint else { return .refused(self.conflict()) }
        let sealer = self.sealer(of: job, stored.record.messageID)
        switch stored.record.state {
        case .finished(let sealed):
            guard let bytes = sealer.open(sealed, as: .answer), let reply = Reply(storedBytes: bytes) else {
                return .refused(self.unreadable(job))
            }
            self.counters[.replay]?.increment()
            return .replayed(reply)
        case .open(let sealed):
            if stored.isHeldElsewhere { return .refused(self.inProgress()) }
            guard let bytes = sealer.open(sealed, as: .progress),
                let progress = SendReservation.Progress(bytes, count: job.command.target.recipientCount)
            else { return .refused(self.unreadable(job)) }
            return try await self.resume(job, stored, progress, sealer)
        }
    }

    private func begin(_ job: Job, at now: Timestamp) async -> Answer {
        let messageID = UUIDv7.generate(at: self.clock.now())
        let draft = IdempotencyRecord(
            fingerprint: job.fingerprint,
            messageID: messageID,
            createdAt: now,
            // Recording the slice deletes its record.
            expiresAt: job.slice == nil
                ? now.advanced(by: self.configuration.lifetime) : Timestamp(microseconds: .max),
            state: .open(progress: [])
        )
        let earlier = SendReservation.Progress(count: job.command.target.recipientCount)
        let reservation = self.reservation(job, draft, earlier: earlier, self.sealer(of: job, messageID))
        var outcome = await self.pipeline.send(job.command, reservation: reservation)
        if reservation.recordID == nil, let refusal = reservation.refusal { outcome.result.answer = .refused(refusal) }
        return await self.finish(reservation, job, outcome)
    }

    /// Continues another process's send: sends to the recipients without a mark, and reports the known outcomes of the
    /// others.
    private func resume(
        _ job: Job,
        _ stored: IdempotencyRecord.Stored,
        _ earlier: SendReservation.Progress,
        _ sealer: IdempotencySealer
    ) async throws(GatewayError) -> Answer {
        // As for every send, nothing is done without a place in the audit.
        guard let place = self.pipeline.audit.reserve(for: job.command.profile.uid) else {
            return .refused(Refusal(.auditUnavailable))
        }
        let reservation = self.reservation(job, stored.record, recordID: stored.id, earlier: earlier, sealer)
        guard try await reservation.takeOver() else { return .refused(self.inProgress()) }
        self.counters[.resumed]?.increment()
        var outcome = SendOutcome(messageID: stored.record.messageID, refused: .lost)
        var later: [RecipientOutcome] = []
        if let rest = job.command.target.keeping(places: earlier.remaining) {
            outcome = await self.pipeline.send(job.command.addressing(rest), reservation: reservation)
            guard !outcome.result.freesKey || job.slice != nil else {
                // Results of the rest alone would appear at other recipients' places.
                outcome.result.answer = outcome.result.asRefusal
                return await self.finish(reservation, job, outcome)
            }
            later = outcome.result.outcomes(count: rest.recipientCount)
        }
        let results = earlier.results(with: later)
        let isKnown = results.contains { $0.code != .outcomeUnknown }
        outcome.result = SendResult(isKnown && job.command.target.isList ? .recipients(results) : .refused(.lost))
        self.recordEarlier(job.command, outcome, earlier, in: place)
        if self.pipeline.audit.isStrict { await self.pipeline.audit.settle() }
        return await self.finish(reservation, job, outcome)
    }

    /// Records the part of a send that another process had begun.
    private func recordEarlier(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        _ earlier: SendReservation.Progress,
        in place: consuming AuditLog.Reservation
    ) {
        let started = earlier.started
        guard let begun = command.target.keeping(places: started) else {
            return self.pipeline.recordAbandoned(command, outcome, in: place)
        }
        let results = earlier.results()
        self.pipeline.recordAbandoned(
            command.addressing(begun),
            SendOutcome(messageID: outcome.messageID, SendResult(.recipients(started.map { results[$0] }))),
            in: place
        )
    }

    /// Stores the reply, or frees the key. The caller gets the reply even if that fails.
    private func finish(_ reservation: SendReservation, _ job: Job, _ outcome: SendOutcome) async -> Answer {
        let reply = job.render(outcome)
        var isKept = true
        do throws(GatewayError) {
            if job.slice == nil && outcome.result.freesKey || reservation.recordID == nil {
                try await reservation.release()
                self.counters[outcome.result.isInProgress ? .inProgress : .freed]?.increment()
            } else {
                isKept = try await reservation.complete(reply.storedBytes)
                self.counters[outcome.result.hasUnknown ? .unknown : .fresh]?.increment()
            }
            // Without a record nothing was written, so the store has not shown that it works.
            if reservation.recordID != nil { self.outage.succeeded() }
        } catch {
            // The record stays open. A repeat reports unknown outcomes and sends nothing twice.
            self.fail(error)
            isKept = false
        }
        return .sent(outcome, reply, isKept: isKept)
    }

    private func sealer(of job: Job, _ messageID: String) -> IdempotencySealer {
        IdempotencySealer(of: job.identity, messageID: messageID, job.command.principal.profile)
    }

    private func reservation(
        _ job: Job,
        _ draft: IdempotencyRecord,
        recordID: Int64? = nil,
        earlier: SendReservation.Progress,
        _ sealer: IdempotencySealer
    ) -> SendReservation {
        let reservation = SendReservation(
            job.identity,
            to: job.command.target,
            draft: draft,
            recordID: recordID,
            earlier: earlier,
            sealer: sealer,
            writer: self.writer,
            counters: self.counters,
            startsPerMark: self.configuration.startsPerMark,
            pace: job.pace,
            leases: self.leases,
            leaseCounters: self.leaseCounters
        )
        if self.leases != nil { self.state.withLock { $0.leased[job.identity] = reservation } }
        return reservation
    }

    private func fail(_ error: GatewayError) {
        self.counters[.failed]?.increment()
        self.outage.failed(error)
    }

    /// Returns the refusal for a stored record that does not open: the message may have left.
    private func unreadable(_ job: Job) -> Refusal {
        self.counters[.unknown]?.increment()
        self.logger.error(
            "A stored record of an idempotency key does not open",
            metadata: ["tenant": "\(job.identity.tenant.text)"]
        )
        return .lost
    }

    // MARK: Expiry

    /// Returns the time by which keys expire. Throws while the predecessor's mark can't be read.
    private func time() async throws(GatewayError) -> Timestamp {
        if let time = self.state.withLock({ $0.time }) { return time.now(at: self.uptime()) }
        let mark = try await self.store.mark()
        let (wall, uptime) = (self.clock.now(), self.uptime())
        return self.state.withLock { state in
            let time = state.time ?? IdempotencyTime(after: mark, wall: wall, uptime: uptime)
            state.time = time
            return time.now(at: uptime)
        }
    }

    private func purgeRegularly() async {
        repeat {
            await self.purge()
        } while (try? await Task.sleep(for: self.configuration.purgeInterval)) != nil
    }

    /// Drops records that have expired. Returns their number.
    @discardableResult
    package func purge() async -> Int {
        var total = 0
        do throws(GatewayError) {
            while !Task.isCancelled {
                let mark = IdempotencyMark(time: try await self.time(), wall: self.clock.now())
                let count = try await self.store.purge(at: mark, limit: self.configuration.purgeBatch)
                self.outage.succeeded()
                total += count
                guard count == self.configuration.purgeBatch else { return total }
            }
            return total
        } catch {
            // A purge that the shutdown ends is no failure of the store.
            if !Task.isCancelled { self.fail(error) }
            return total
        }
    }
}

extension Refusal {
    /// The refusal for a message that may have been sent, and whose outcome is not stored.
    fileprivate static let lost = Refusal(
        .outcomeUnknown,
        "The gateway was stopped, or its store failed, while this was being sent; it may have been delivered"
    )
}

extension Target {
    /// Returns a list of the recipients at these ascending places. Returns `nil` for no places, or if the target is no
    /// list.
    fileprivate func keeping(places: [Int]) -> Target? {
        guard !places.isEmpty else { return nil }
        var isKept = Array(repeating: false, count: self.recipientCount)
        for place in places { isKept[place] = true }
        return self.keeping(isKept)
    }
}

extension SendResult {
    /// One outcome for each recipient of a slice. A device group counts as one.
    fileprivate func outcomesOfSlice(count: Int) -> [RecipientOutcome] {
        guard case .group(let group) = self.answer else { return self.outcomes(count: count) }
        return [
            group.success > 0
                ? .accepted(Acceptance(messageID: group.messageID ?? "")) : .rejected(.upstreamUnavailable)
        ]
    }

    /// The first cause of a result without accepted recipients, as the answer to the whole request.
    fileprivate var asRefusal: Answer {
        guard case .recipients(let outcomes) = self.answer else { return self.answer }
        let causes = outcomes.compactMap { if case .rejected(let cause) = $0 { cause } else { nil } }
        guard let first = causes.first else { return self.answer }
        let retryAfter = causes.compactMap(\.retryAfter).max()
        return .refused(Refusal(first.code, retryAfter: retryAfter, limitedBy: first.limitedBy))
    }
}
