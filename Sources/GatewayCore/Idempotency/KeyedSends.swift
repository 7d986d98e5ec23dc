import FCMModel
package import Logging
import Metrics
import Synchronization

/// What became of an idempotency key, as it is counted.
enum IdempotencyEvent: String, CaseIterable {
    /// Its send was answered for the first time, and the answer is kept.
    case fresh
    /// The kept answer was given again.
    case replay
    /// Another request had the key before.
    case conflict
    /// The first request is still running.
    case inProgress = "in_progress"
    /// A send was taken up that another process had begun.
    case resumed
    /// The answer says of a recipient that its outcome is unknown.
    case unknown
    /// Nothing was sent, so that the key can be used again.
    case freed
    /// An answer was dropped before its time to make room.
    case evicted
    /// The store did not take or give what is kept of a key.
    case failed
}

/// Sends that carry an idempotency key: each is made once, and answered alike however often it is asked for.
///
/// What runs is known in memory, since one process serves a store; whatever else the store calls open was begun by a
/// process that ended. A send goes on when its caller is gone: it belongs to this service, without which sends wait in
/// vain.
package final class KeyedSends: Sendable {
    /// Renders what became of a send as the answer that repeats get.
    package typealias Rendering = @Sendable (SendOutcome) -> [UInt8]

    /// A send on its way to the service.
    struct Job: Sendable {
        let command: SendCommand
        let identity: IdempotencyIdentity
        let fingerprint: [UInt8]
        let executor: (any TaskExecutor)?
        let render: Rendering
        let continuation: CheckedContinuation<KeyedAnswer, Never>
    }

    struct State {
        /// The sends that run, with what tells their requests apart.
        var running: [IdempotencyIdentity: [UInt8]] = [:]
        var jobs: [Job] = []
        var isClosed = false
        /// The time by which keys expire, once the store has said where an earlier process stood.
        var time: IdempotencyTime?
    }

    let store: any IdempotencyStore
    let journal: IdempotencyJournal
    let clock: any WallClock
    private let uptime: @Sendable () -> ContinuousClock.Instant
    let configuration: IdempotencyConfiguration
    let counters: [IdempotencyEvent: Counter]
    let logger: Logger
    let state = Mutex(State())
    let wake: AsyncStream<Void>
    let wakeContinuation: AsyncStream<Void>.Continuation
    let hasRun = Atomic(false)
    private let pipeline: SendPipeline

    /// Sends by a pipeline.
    ///
    /// The uptime tells how much time has passed, whatever the clock is set to.
    package init(
        pipeline: SendPipeline,
        store: any IdempotencyStore,
        clock: any WallClock,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        configuration: IdempotencyConfiguration = IdempotencyConfiguration(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        self.pipeline = pipeline
        self.store = store
        self.journal = IdempotencyJournal(store: store)
        self.clock = clock
        self.uptime = uptime
        self.configuration = configuration
        self.counters = metrics.counters(.idempotency, by: IdempotencyEvent.self)
        self.logger = logger
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Sends a message unless its key was used before.
    ///
    /// - Parameters:
    ///   - command: the message.
    ///   - request: the request that it came with.
    ///   - executor: where the work is done.
    ///   - render: renders the answer that repeats get.
    /// - Returns: the answer.
    package func send(
        _ command: SendCommand,
        once request: KeyedRequest,
        on executor: (any TaskExecutor)?,
        render: @escaping Rendering
    ) async -> KeyedAnswer {
        let profile = command.principal.profile
        guard self.pipeline.refusal(of: command) == nil else {
            // Whoever may not send learns nothing of earlier sends either.
            let outcome = await self.pipeline.send(command)
            return .sent(outcome, answer: render(outcome))
        }
        let identity = IdempotencyIdentity(request, of: profile)
        let fingerprint = IdempotencySealer.fingerprint(of: request, identity, profile)
        if let refusal = self.enter(identity, fingerprint) { return .refused(refusal) }
        return await withCheckedContinuation { continuation in
            self.hand(
                Job(
                    command: command,
                    identity: identity,
                    fingerprint: fingerprint,
                    executor: executor,
                    render: render,
                    continuation: continuation
                )
            )
        }
    }

    // MARK: What runs

    private func enter(_ identity: IdempotencyIdentity, _ fingerprint: [UInt8]) -> Refusal? {
        let running = self.state.withLock { state -> [UInt8]? in
            if let running = state.running[identity] { return running }
            state.running[identity] = fingerprint
            return nil
        }
        guard let running else { return nil }
        guard running == fingerprint else { return self.conflict() }
        self.counters[.inProgress]?.increment()
        return Refusal(.idempotencyInProgress, retryAfter: 1)
    }

    private func leave(_ identity: IdempotencyIdentity) {
        self.state.withLock { _ = $0.running.removeValue(forKey: identity) }
    }

    private func conflict() -> Refusal {
        self.counters[.conflict]?.increment()
        return Refusal(.idempotencyConflict)
    }

    private func hand(_ job: Job) {
        let isTaken = self.state.withLock { state in
            guard !state.isClosed else { return false }
            state.jobs.append(job)
            return true
        }
        guard isTaken else { return self.turnAway(job) }
        self.wakeContinuation.yield()
    }

    /// Answers a send that is not begun any more.
    func turnAway(_ job: Job) {
        self.leave(job.identity)
        job.continuation.resume(
            returning: .refused(Refusal(.overloaded, "The gateway is shutting down"))
        )
    }

    // MARK: Sending

    /// Makes a send, or finds what became of it before.
    func perform(_ job: Job) async {
        let answer: KeyedAnswer
        do throws(GatewayError) {
            answer = try await self.answer(to: job)
        } catch {
            self.fail(error)
            answer = .refused(.unkeepable)
        }
        self.leave(job.identity)
        job.continuation.resume(returning: answer)
    }

    private func answer(to job: Job) async throws(GatewayError) -> KeyedAnswer {
        let now = try await self.time()
        guard let stored = try await self.store.record(of: job.identity), stored.record.expiresAt > now else {
            return await self.begin(job, at: now)
        }
        guard stored.record.fingerprint == job.fingerprint else { return .refused(self.conflict()) }
        let sealer = self.sealer(of: job, stored.record.messageID)
        switch stored.record.state {
        case .finished(let sealed):
            guard let answer = sealer.open(sealed, as: .answer) else { return .refused(self.unreadable(job)) }
            self.counters[.replay]?.increment()
            return .replayed(answer)
        case .open(let sealed):
            guard let bytes = sealer.open(sealed, as: .progress),
                let progress = SendProgress(bytes, count: job.command.target.recipientCount)
            else { return .refused(self.unreadable(job)) }
            self.counters[.resumed]?.increment()
            return await self.resume(job, stored, progress, sealer)
        }
    }

    private func begin(_ job: Job, at now: Timestamp) async -> KeyedAnswer {
        let messageID = UUIDv7.generate(at: self.clock.now())
        let attempt = self.attempt(
            job,
            IdempotencyRecord(
                fingerprint: job.fingerprint,
                messageID: messageID,
                createdAt: now,
                expiresAt: now.advanced(by: self.configuration.lifetime),
                state: .open(progress: [])
            ),
            earlier: SendProgress(count: job.command.target.recipientCount),
            self.sealer(of: job, messageID)
        )
        var outcome = await self.pipeline.trying(attempt).send(job.command)
        if attempt.recordID == nil, let refusal = attempt.refusal { outcome.answer = .refused(refusal) }
        return await self.end(attempt, job, outcome)
    }

    /// Goes on where another process ended: sends to those to whom nothing can have left, and tells of the others what
    /// is known.
    private func resume(
        _ job: Job,
        _ stored: StoredIdempotencyRecord,
        _ earlier: SendProgress,
        _ sealer: IdempotencySealer
    ) async -> KeyedAnswer {
        // As for every send: without a place in the audit nothing is done.
        guard let place = self.pipeline.audit.reserve() else { return .refused(Refusal(.auditUnavailable)) }
        let attempt = self.attempt(job, stored.record, recordID: stored.id, earlier: earlier, sealer)
        var outcome = SendOutcome(messageID: stored.record.messageID, answer: .refused(.lost))
        var later: [RecipientOutcome] = []
        if let rest = job.command.target.keeping(places: earlier.remaining) {
            outcome = await self.pipeline.trying(attempt).send(job.command.addressing(rest))
            guard !outcome.answer.freesKey else {
                // Results of the rest alone would stand at other recipients' places.
                outcome.answer = outcome.answer.asRefusal
                return await self.end(attempt, job, outcome)
            }
            later = SendPipeline.outcomes(of: outcome.answer, count: rest.recipientCount)
        }
        let results = earlier.results(with: later)
        let isKnown = results.contains { $0.code != .outcomeUnknown }
        outcome.answer = isKnown && job.command.target.isList ? .multiple(results) : .refused(.lost)
        self.recordEarlier(job.command, outcome, earlier, in: place)
        if self.pipeline.audit.isStrict { await self.pipeline.audit.settle() }
        return await self.end(attempt, job, outcome)
    }

    /// Records the part of a send that another process had begun.
    private func recordEarlier(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        _ earlier: SendProgress,
        in place: consuming AuditReservation
    ) {
        let started = earlier.started.sorted()
        guard let begun = command.target.keeping(places: started) else {
            return self.pipeline.recordAbandoned(command, outcome, in: place)
        }
        let results = earlier.results()
        self.pipeline.recordAbandoned(
            command.addressing(begun),
            SendOutcome(messageID: outcome.messageID, answer: .multiple(started.map { results[$0] })),
            in: place
        )
    }

    /// Keeps the answer, or frees the key; whatever comes of that, the caller is told what became of the message.
    private func end(_ attempt: SendAttempt, _ job: Job, _ outcome: SendOutcome) async -> KeyedAnswer {
        let answer = job.render(outcome)
        do throws(GatewayError) {
            if outcome.answer.freesKey || attempt.recordID == nil {
                try await attempt.release()
                self.counters[.freed]?.increment()
            } else {
                try await attempt.complete(answer)
                self.counters[outcome.answer.hasUnknown ? .unknown : .fresh]?.increment()
            }
        } catch {
            // The record stays open: a repeat is told that the outcome is unknown, and sends nothing twice.
            self.fail(error)
        }
        return .sent(outcome, answer: answer)
    }

    // MARK: Parts

    /// The time by which keys expire.
    ///
    /// - Throws: `storeUnavailable` while it is not known where an earlier process stood.
    func time() async throws(GatewayError) -> Timestamp {
        if let time = self.state.withLock({ $0.time }) { return time.now(at: self.uptime()) }
        let mark = try await self.store.mark()
        let (wall, uptime) = (self.clock.now(), self.uptime())
        return self.state.withLock { state in
            let time = state.time ?? IdempotencyTime(after: mark, wall: wall, uptime: uptime)
            state.time = time
            return time.now(at: uptime)
        }
    }

    private func sealer(of job: Job, _ messageID: String) -> IdempotencySealer {
        IdempotencySealer(of: job.identity, messageID: messageID, job.command.principal.profile)
    }

    private func attempt(
        _ job: Job,
        _ draft: IdempotencyRecord,
        recordID: Int64? = nil,
        earlier: SendProgress,
        _ sealer: IdempotencySealer
    ) -> SendAttempt {
        SendAttempt(
            job.identity,
            to: job.command.target,
            draft: draft,
            recordID: recordID,
            earlier: earlier,
            sealer: sealer,
            journal: self.journal,
            counters: self.counters,
            startsPerMark: self.configuration.startsPerMark
        )
    }

    private func fail(_ error: GatewayError) {
        self.counters[.failed]?.increment()
        self.logger.error(
            "What is kept of an idempotency key can't be read or written",
            metadata: ["cause": "\(error.message)"]
        )
    }

    /// What is kept does not open: the message may have left.
    private func unreadable(_ job: Job) -> Refusal {
        self.counters[.unknown]?.increment()
        self.logger.error(
            "What is kept of an idempotency key does not open",
            metadata: ["tenant": "\(job.identity.tenant.text)"]
        )
        return .lost
    }
}

extension Refusal {
    /// What is told of a message that may have been sent, and of whose end nothing is kept.
    fileprivate static let lost = Refusal(
        .outcomeUnknown,
        "The gateway was stopped, or its store failed, while this was being sent; it may have been delivered"
    )
}

extension Target {
    /// A list of the recipients at some places, which rise; `nil` where there is none, and for anything that is no list.
    fileprivate func keeping(places: [Int]) -> Target? {
        guard !places.isEmpty else { return nil }
        var isKept = Array(repeating: false, count: self.recipientCount)
        for place in places { isKept[place] = true }
        return self.keeping(isKept)
    }
}

extension SendOutcome.Answer {
    /// The first cause of an answer that took nothing from anybody, for a whole request.
    fileprivate var asRefusal: SendOutcome.Answer {
        guard case .multiple(let outcomes) = self else { return self }
        let causes = outcomes.compactMap { if case .rejected(let cause) = $0 { cause } else { nil } }
        guard let first = causes.first else { return self }
        return .refused(
            Refusal(
                first.code,
                retryAfter: causes.compactMap(\.retryAfter).max(),
                limitedBy: first.limitedBy
            )
        )
    }
}
