package import FCMModel
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// Sends what is due of batches, each slice by the idempotent send.
///
///     store: due chunks ──claim──▶ slice ──▶ idempotent send ──▶ outcomes ──record──▶ store
///
/// - **Turns.** The tenant with the fewest recipients so far is next (``TenantTurns``). A tenant has at most four full
///   slices in flight while another one has something due, else twelve.
/// - **Pace.** Calls leave at the times of the tenant's ``Pacer``. A slice is claimed when most of the earlier ones have
///   left, and while the tenant's quota keeps a fifth of its burst for live sends.
/// - **Below live sends.** Calls in flight are bounded by what live sends leave. A replica that drains begins none.
/// - **Pauses.** FCM's 429 for a project pauses all its tenants on all replicas, live sends included.
/// - **Failures.** A slice whose outcomes are not known to be kept is put back, or waits for its lease to end. The next
///   claim sends the same slice under the same key, so that nothing is sent again whose outcome was stored.
package final class BatchRunner: Service {
    /// Times, shares and bounds.
    package struct Configuration: Sendable {
        /// The part of a tenant's limit that its batches use, from 0 to 1.
        package var share = 0.8
        /// The time between two sends to topics or conditions of one tenant.
        package var fanOutGap = Duration.seconds(1)
        /// The days for which batches are kept after their end.
        package var retentionDays = 7
        /// True if batches continue after a standby of PostgreSQL has taken over.
        package var resumesAfterFailover = false
        /// The calls of one list that are in flight at a time.
        package var callsPerList = 100
        package var bounds = BatchBounds()

        package init() {}
    }

    /// Reads the stored message of a batch. Throws the reason why it can't be sent.
    package typealias Decoder =
        @Sendable (_ message: [UInt8], Batch, Target, Caller, Timestamp) throws(Refusal) -> SendCommand

    private static let maxCalls = 900
    /// The most recipients of a tenant that are in flight: alone, and while another tenant has something due.
    private static let (maxAlone, maxBeside) = (12 * Batch.Chunk.maxRecipients, 4 * Batch.Chunk.maxRecipients)
    /// The most chunks of one claim.
    private static let maxClaims = 200
    /// The time for the calls of one slice.
    private static let timeout = Duration.seconds(60)
    /// The longest time for which a slice waits for its next departure.
    private static let longestWait = Duration.seconds(10)
    private static let purgedAtOnce = 10
    /// The time after a step of the clock in which nothing expires.
    private static let grace = Duration.seconds(60)
    private static let leastStep = Duration.seconds(30)
    /// A pause that ends by so little later than the known one is the same.
    private static let pauseTolerance = Duration.seconds(2)

    /// A tenant's slices that this process sends.
    private struct Load {
        var pacer = Pacer()
        var inFlight = 0
        /// The recipients in flight whose calls have no time of departure yet.
        var queued = 0
        /// The recipients of a claimed chunk, as lately seen.
        var usual = Batch.Chunk.maxRecipients
        /// The sends to topics and conditions that had to wait since the last one that did not.
        var waitingFanOuts = 0
    }

    private struct State {
        var loads: [TenantID: Load] = [:]
        var turns = TenantTurns()
        /// The slices that are sent, and their recipients without a time of departure.
        var claims: [Batch.Claim: Int] = [:]
        var calls = 0
        /// The slices that the store has neither recorded nor taken back.
        var stranded: [Batch.Claim] = []
        /// The ends of the projects' pauses.
        var pauses: [String: Uptime] = [:]
        /// The number of the next slice's executor.
        var turn = 0
        /// The store's time as last seen, and the moment of that.
        var lastSeen: (time: Timestamp, moment: Uptime)?
        /// The end of the grace after a step of the store's clock.
        var graceEnd: Uptime?
    }

    private let store: any BatchStore
    private let sends: IdempotentSends
    private let limiter: any RateLimiter
    private let directory: Directory
    private let configuration: Configuration
    private let decode: Decoder
    /// The calls of slices are made on these event loops in turn.
    private let executors: [any TaskExecutor]
    /// Stops a tenant's live sends for a time.
    private let pause: @Sendable (TenantProfile, Duration) -> Void
    private let writer: GroupCommitWriter<BatchWrite, BatchWrite.Outcome>
    /// The number of live replicas.
    private let replicas: @Sendable () -> Int
    /// The calls that live sends leave.
    private let room: @Sendable () -> Int
    private let leases: LeaseTerms
    private let isShared: Bool
    private let clock: any WallClock
    /// Waits until a time of departure.
    private let sleep: @Sendable (Uptime) async -> Void
    private let metrics: BatchMetrics
    private let outage: OutageLog
    private let logger: Logger
    private let state = Mutex(State())
    private let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    package init(
        store: any BatchStore,
        sends: IdempotentSends,
        limiter: any RateLimiter,
        directory: Directory,
        configuration: Configuration = Configuration(),
        leases: LeaseTerms,
        isShared: Bool,
        replicas: @escaping @Sendable () -> Int,
        room: @escaping @Sendable () -> Int,
        clock: any WallClock,
        executors: [any TaskExecutor] = [],
        pause: @escaping @Sendable (TenantProfile, Duration) -> Void = { _, _ in },
        sleep: @escaping @Sendable (Uptime) async -> Void = {
            try? await Task.sleep(until: $0, tolerance: .zero)
        },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger,
        decode: @escaping Decoder
    ) {
        (self.store, self.sends, self.limiter, self.directory) = (store, sends, limiter, directory)
        (self.configuration, self.leases, self.isShared) = (configuration, leases, isShared)
        (self.replicas, self.room, self.clock, self.decode) = (replicas, room, clock, decode)
        (self.executors, self.pause, self.sleep) = (executors, pause, sleep)
        self.writer = GroupCommitWriter(
            changesPerTransaction: 200,
            transaction: { (changes: [BatchWrite]) async throws(GatewayError) -> [BatchWrite.Outcome] in
                try await store.apply(changes)
            }
        )
        self.metrics = BatchMetrics(metrics)
        self.outage = OutageLog(
            "Batches can't be read or recorded; they wait for the store",
            end: "Batches are read and recorded again",
            logger
        )
        self.logger = logger
    }

    /// Has the store read soon, because something may be due.
    package func wake() { self.wakes.continuation.yield() }

    /// Stores a new batch.
    func create(_ new: BatchWrite.New) async throws(GatewayError) -> BatchWrite.Outcome {
        try await self.writer.commit(.create(new))
    }

    /// Commits what is created and sent, until its task is cancelled.
    package func runWriter() async { _ = await self.writer.run() }

    /// Sends until shutdown, and then lets the slices that have begun finish.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.runWriter() }
            group.addTask { await self.sweepRegularly() }
            if self.isShared { group.addTask { await self.renewRegularly() } }
            await withDiscardingTaskGroup(returning: Void.self) { slices in
                self.wake()
                var timer: Task<Void, Never>?
                for await _ in self.wakes.stream.cancelOnGracefulShutdown() {
                    timer?.cancel()
                    let wait = await self.claim(into: &slices)
                    guard let wait else { continue }
                    timer = Task { if (try? await Task.sleep(for: wait)) != nil { self.wake() } }
                }
                timer?.cancel()
            }
            group.cancelAll()
        }
    }

    /// Sends what is due now, and returns when it is recorded.
    package func sendDue() async {
        await withDiscardingTaskGroup { slices in _ = await self.claim(into: &slices) }
    }

    // MARK: Claims

    /// Claims and begins what may begin now. Returns the time after which more may, or `nil` if only a wake can bring
    /// more.
    private func claim(into slices: inout DiscardingTaskGroup) async -> Duration? {
        do throws(GatewayError) {
            for claim in self.state.withLock({ $0.stranded }) {
                _ = try await self.writer.commit(.putBack(claim, after: .zero))
                self.state.withLock { $0.stranded.removeAll { $0 == claim } }
            }
            let due = try await self.store.due()
            self.outage.succeeded()
            self.noticeStep(of: due.time)
            self.heed(due.pauses)
            var wait = due.wait
            // Other replicas put slices back, and change what is due.
            if self.isShared, !due.tenants.isEmpty || self.state.withLock({ !$0.claims.isEmpty }) {
                wait = min(wait ?? .seconds(1), .seconds(1))
            }
            var tenants = Set(due.tenants)
            while let tenant = self.state.withLock({ $0.turns.next(of: tenants) }), !Task.isShuttingDownGracefully {
                guard let profile = self.directory.snapshot.tenants[tenant] else {
                    tenants.remove(tenant)
                    continue
                }
                let request = await self.request(of: profile, besides: tenants.count > 1)
                guard case .claim(let chunks, let slice, let recipients) = request else {
                    tenants.remove(tenant)
                    if case .wait(let time) = request { wait = min(wait ?? time, time) }
                    continue
                }
                let claimed = try await self.store.claim(
                    of: tenant,
                    chunks: chunks,
                    slice: slice,
                    recipients: recipients
                )
                if claimed.count < chunks { tenants.remove(tenant) }
                for slice in claimed {
                    guard self.begin(slice, profile) else { continue }
                    slices.addTask { await self.send(slice, profile) }
                }
            }
            return wait
        } catch {
            self.outage.failed(error)
            return .seconds(1)
        }
    }

    private enum Request {
        case claim(chunks: Int, slice: Int, recipients: Int)
        case wait(Duration)
    }

    /// Decides how much of a tenant may be claimed now.
    private func request(of profile: TenantProfile, besides others: Bool) async -> Request {
        let quotas = await self.limiter.status(of: LimitRequest(calls: 0, of: profile), now: self.clock.now()).tenant
        // A fifth of each burst is kept for live sends.
        let granted = quotas.map { $0.remaining - $0.policy.burst / 5 }.min() ?? .max
        guard granted > 0 else { return .wait(.milliseconds(250)) }
        let (limit, inOneCall) = (self.limit(of: profile), profile.tenant.upstream == .legacy)
        let now = Uptime.now
        return self.state.withLock { state in
            let load = state.loads[profile.id] ?? Load()
            let most = inOneCall ? 100 : Batch.Chunk.maxRecipients
            let slice = load.pacer.sliceSize(limit: limit, atMost: most, inOneCall: inOneCall, at: now)
            let delay = load.pacer.delay(at: now)
            // More than half a second's worth waits already.
            if delay > .milliseconds(500) { return .wait(delay - .milliseconds(250)) }
            let ahead = max(Double(slice), load.pacer.rate(limit: limit, at: now) / 2)
            let bound = others ? Self.maxBeside : Self.maxAlone
            let calls = min(Self.maxCalls, self.room()) - state.calls
            let room = min(Int(ahead) - load.queued, bound - load.inFlight, granted)
            guard room > 0, calls > 0 else { return .wait(.milliseconds(100)) }
            let usual = max(1, min(slice, load.usual))
            let chunks = min(max(1, room / usual), max(1, calls / self.calls(of: usual, profile)), Self.maxClaims)
            return .claim(chunks: chunks, slice: min(slice, granted), recipients: max(room, slice))
        }
    }

    /// The recipients per second that the tenant's quota leaves to the batches of this replica.
    private func limit(of profile: TenantProfile) -> Double {
        let rates = profile.limits.tenant.map { Double($0.rate) / Double($0.periodSeconds) }
        let share = self.configuration.share / Double(max(1, self.replicas()))
        return (rates.min() ?? 10_000) * share
    }

    private func calls(of count: Int, _ profile: TenantProfile) -> Int {
        profile.tenant.upstream == .legacy ? max(1, count / 25) : min(count, self.configuration.callsPerList)
    }

    /// Counts a slice. Returns false if this process is sending it, because its lease ended and it was claimed again.
    private func begin(_ slice: Batch.Slice, _ profile: TenantProfile) -> Bool {
        let claim = slice.claim
        self.metrics.dwell.recordMicroseconds(max(0, slice.time.microseconds - claim.dueAt.microseconds))
        return self.state.withLock { state in
            guard state.claims[claim] == nil else { return false }
            state.claims[claim] = claim.slice
            state.calls += self.calls(of: claim.slice, profile)
            state.turns.add(claim.slice, of: profile.id)
            state.loads[profile.id, default: Load()].inFlight += claim.slice
            state.loads[profile.id]?.queued += claim.slice
            state.loads[profile.id]?.usual = claim.slice
            return true
        }
    }

    private func nextExecutor() -> (any TaskExecutor)? {
        guard !self.executors.isEmpty else { return nil }
        return self.state.withLock { state in
            state.turn = (state.turn + 1) % self.executors.count
            return self.executors[state.turn]
        }
    }

    private func end(_ claim: Batch.Claim, _ profile: TenantProfile) {
        self.state.withLock { state in
            let queued = state.claims.removeValue(forKey: claim) ?? 0
            state.calls -= self.calls(of: claim.slice, profile)
            state.loads[profile.id]?.inFlight -= claim.slice
            state.loads[profile.id]?.queued -= queued
        }
        self.wake()
    }

    /// Returns the pace of a slice's calls: marks for at most a quarter of a second, whose calls leave a few at a time at
    /// the tenant's next time of departure.
    private func pace(of claim: Batch.Claim, _ profile: TenantProfile, mayStart: Bool) -> SendReservation.Pace {
        let rate = self.state.withLock { state in
            (state.loads[profile.id] ?? Load()).pacer.rate(limit: self.limit(of: profile), at: .now)
        }
        let startsPerMark = mayStart ? max(1, min(100, Int(rate / 4))) : 0
        let wait: @Sendable (Int) async -> Bool = { count in
            let now = Uptime.now
            let departure = self.state.withLock { state in
                let known = min(count, state.claims[claim] ?? 0)
                state.claims[claim]? -= known
                state.loads[profile.id]?.queued -= known
                return state.loads[profile.id, default: Load()].pacer
                    .departure(of: count, limit: self.limit(of: profile), at: now)
            }
            // During a pause after FCM's 429, the recipients wait in the store.
            guard departure < now + Self.longestWait else { return false }
            if departure > now { await self.sleep(departure) }
            return !Task.isCancelled
        }
        return SendReservation.Pace(startsPerMark: startsPerMark, wait: wait, executor: self.nextExecutor())
    }

    // MARK: Slices

    private func send(_ slice: Batch.Slice, _ profile: TenantProfile) async {
        do throws(GatewayError) {
            if let wait = try await self.settle(slice, profile) {
                _ = try await self.writer.commit(.putBack(slice.claim, after: wait))
            }
            self.outage.succeeded()
        } catch {
            self.outage.failed(error)
            self.state.withLock { $0.stranded.append(slice.claim) }
        }
        self.end(slice.claim, profile)
    }

    /// Sends a slice and records its outcomes. Returns a time if nothing is recorded, and the slice is to be tried again
    /// after it.
    private func settle(
        _ slice: Batch.Slice,
        _ profile: TenantProfile
    ) async throws(GatewayError) -> Duration? {
        let claim = slice.claim
        var batch = slice.batch
        if !batch.state.isOver, batch.expiresAt <= slice.time, !self.isInGrace {
            batch = try await self.store.apply(.expire, to: batch.id, of: nil) ?? batch
        }
        let sender = self.sender(of: batch, profile, at: slice.time)
        if let reason = sender.reason, !batch.state.isOver {
            _ = try await self.store.apply(.pause(reason), to: batch.id, of: nil)
            self.report(batch, "The batch is paused.", reason)
            return .zero
        }
        let sealer = BatchSealer(batch.id, of: profile)
        if batch.state == .paused { return .zero }
        guard let principal = sender.principal else {
            return try await self.give(up: slice, sealer, because: Batch.Reason.keyRevoked)
        }
        if batch.kind == .topic || batch.kind == .condition, let wait = try await self.waitForFanOut(of: batch.tenant) {
            return wait
        }
        let command: SendCommand
        let pending: [Batch.Recipient]
        do {
            pending = try sealer.recipients(in: slice.pending, of: claim.chunk)
            guard let target = Target(batch.kind, pending.prefix(claim.slice).map(\.text)) else {
                throw Refusal(.invalidTarget)
            }
            let caller = Caller(
                principal: principal,
                origin: RequestOrigin(method: "BATCH", requestID: batch.id),
                deadline: .now + Self.timeout
            )
            command = try self.decode(try sealer.open(message: slice.message), batch, target, caller, slice.time)
        } catch {
            return try await self.give(up: slice, sealer, because: error)
        }
        let outcomes = await self.sends.send(
            command,
            slice: claim,
            digest: sealer.digest(of: slice),
            // Of a batch that is over, only what has left already is recorded.
            pace: self.pace(of: claim, profile, mayStart: !batch.state.isOver)
        )
        guard let outcomes else { return .seconds(5) }
        var options = batch.options
        // Nothing more is sent of a batch that is over.
        if batch.state.isOver { options.resendsUnknown = false }
        let settlement = SliceSettlement(
            Array(pending.prefix(claim.slice)),
            outcomes,
            options,
            retries: claim.retries
        )
        try await self.heed(settlement, batch, profile)
        let left = settlement.pending + pending.dropFirst(claim.slice)
        let recording = try self.recording(of: slice, sealer, left, settlement.results, settlement.added) { recording in
            recording.dueAt = self.nextInWindow(of: claim, batch)
            // Those that failed together do not return together.
            recording.wait = settlement.wait
                .map { .milliseconds($0 * 1_000 + Int.random(in: 0...($0 * 200))) }
            recording.isRetry = settlement.hasFailed
        }
        try await self.record(recording, of: claim)
        return nil
    }

    /// Takes the tenant's turn to send to a topic. Returns a time if the send has to wait: each later one waits longer, so
    /// that they do not all come back for the same turn.
    private func waitForFanOut(of tenant: TenantID) async throws(GatewayError) -> Duration? {
        let gap = self.configuration.fanOutGap
        let wait = try await self.store.takeFanOut(of: tenant, gap: gap)
        let waiting = self.state.withLock { state in
            let earlier = state.loads[tenant, default: Load()].waitingFanOuts
            state.loads[tenant]?.waitingFanOuts = wait == nil ? 0 : earlier + 1
            return earlier
        }
        return wait.map { $0 + gap * waiting }
    }

    private func recording(
        of slice: Batch.Slice,
        _ sealer: BatchSealer,
        _ left: [Batch.Recipient],
        _ results: [Batch.Result],
        _ added: Batch.Counts,
        _ change: (inout Batch.Recording) -> Void = { _ in }
    ) throws(GatewayError) -> Batch.Recording {
        let chunk = slice.claim.chunk
        let earlier = (try? sealer.results(in: slice.results, of: chunk)) ?? []
        var recording = Batch.Recording(
            pending: try sealer.seal(left, of: chunk),
            pendingCount: left.count,
            results: try sealer.seal(earlier + results, of: chunk),
            added: added,
            dueAt: slice.claim.dueAt
        )
        change(&recording)
        return recording
    }

    private func record(_ recording: Batch.Recording, of claim: Batch.Claim) async throws(GatewayError) {
        if try await self.writer.commit(.record(recording, of: claim)) == .done { self.metrics.count(recording.added) }
    }

    /// Returns the owner of the key that a batch is sent by, or the reason to pause it. A key that has ended is replaced
    /// by the latest one of its name, as after a rotation.
    private func sender(
        of batch: Batch,
        _ profile: TenantProfile,
        at now: Timestamp
    ) -> (principal: Principal?, reason: Batch.Reason?) {
        let snapshot = self.directory.snapshot
        let own = snapshot.principals[batch.keyID]
        guard !profile.tenant.isDisabled else { return (own, .tenantDisabled) }
        let heirs = profile.keys.filter { $0.name == own?.key.name && $0.isAlive(at: now) }
        let heir = heirs.max { $0.createdAt < $1.createdAt }.flatMap { snapshot.principals[$0.id] }
        let principal = own?.key.isAlive(at: now) == true ? own : heir
        guard let principal, principal.has(.sendMessages), principal.profile.id == batch.tenant else {
            return (own, .keyRevoked)
        }
        return (principal, nil)
    }

    /// Ends a slice that can't be read: its message may have left before.
    private func give(
        up slice: Batch.Slice,
        _ sealer: BatchSealer,
        because cause: Any
    ) async throws(GatewayError) -> Duration? {
        self.logger.error(
            "A batch's recipients can't be sent to; their outcome is unknown.",
            metadata: ["batch": "\(slice.claim.batch)", "reason": "\(cause)"]
        )
        // Recipients that can't be read at all are counted, and can't be named.
        let pending = try? sealer.recipients(in: slice.pending, of: slice.claim.chunk)
        let lost = pending?.prefix(slice.claim.slice) ?? []
        let left = pending?.dropFirst(slice.claim.slice) ?? []
        var added = Batch.Counts()
        added.unknown = pending == nil ? slice.pendingCount : lost.count
        let results = lost.map { Batch.Result($0, .rejected(.outcomeUnknown)) }
        try await self.record(try self.recording(of: slice, sealer, Array(left), results, added), of: slice.claim)
        return nil
    }

    /// Pauses what FCM's answers ask to pause.
    private func heed(_ settlement: SliceSettlement, _ batch: Batch, _ profile: TenantProfile)
        async throws(GatewayError)
    {
        if settlement.lacksCredential, !batch.state.isOver {
            let change = BatchChange.pause(.upstreamCredentials, credential: profile.credentialFingerprint ?? "")
            _ = try await self.store.apply(change, to: batch.id, of: nil)
            self.report(batch, "The batch is paused.", .upstreamCredentials)
        }
        guard let seconds = settlement.quotaPause else { return }
        let now = Uptime.now
        let pacer = self.state.withLock { ($0.loads[profile.id] ?? Load()).pacer }
        // Slices that meet the same 429, or the pause after it, are no news.
        if let setback = pacer.setback, now < setback.end + Self.pauseTolerance { return }
        self.metrics.quotaPauses.increment()
        let pause = ProjectPause(
            project: profile.pausedProject,
            rest: .seconds(seconds),
            permille: Int(pacer.halvedFactor(at: now) * 1_000)
        )
        self.heed([pause])
        try await self.store.add(pause)
    }

    /// Stops the batches and live sends of all tenants of paused projects.
    private func heed(_ pauses: [ProjectPause]) {
        let now = Uptime.now
        let news = self.state.withLock { state in
            pauses.filter { pause in
                let end = now + pause.rest
                if let known = state.pauses[pause.project], end < known + Self.pauseTolerance { return false }
                state.pauses[pause.project] = end
                return true
            }
        }
        guard !news.isEmpty else { return }
        for profile in self.directory.snapshot.tenants.values {
            guard let pause = news.last(where: { $0.project == profile.pausedProject }) else { continue }
            let setback = Pacer.Setback(end: now + pause.rest, factor: Double(pause.permille) / 1_000)
            self.state.withLock { $0.loads[profile.id, default: Load()].pacer.take(setback) }
            self.pause(profile, pause.rest)
        }
    }

    private func nextInWindow(of claim: Batch.Claim, _ batch: Batch) -> Timestamp {
        guard let window = batch.options.windowSeconds else { return claim.dueAt }
        return claim.dueAt.advanced(by: .seconds(window) * claim.slice / max(1, batch.counts.total))
    }

    /// Begins a grace if the store's clock was set forward: a step that is corrected ends no batch.
    private func noticeStep(of time: Timestamp) {
        let now = Uptime.now
        self.state.withLock { state in
            if let last = state.lastSeen {
                let passed = Duration.microseconds(time.microseconds - last.time.microseconds)
                if passed - (now - last.moment) > Self.leastStep { state.graceEnd = now + Self.grace }
            }
            state.lastSeen = (time, now)
        }
    }

    private var isInGrace: Bool { self.state.withLock { $0.graceEnd.map { .now < $0 } ?? false } }

    private func report(_ batch: Batch, _ text: Logger.Message, _ reason: Batch.Reason) {
        self.logger.notice(
            text,
            metadata: ["batch": "\(batch.id)", "tenant": "\(batch.tenant.text)", "reason": "\(reason.rawValue)"]
        )
    }

    // MARK: Maintenance

    private func renewRegularly() async {
        while (try? await Task.sleep(for: self.leases.renewalInterval)) != nil {
            let claims = self.state.withLock { Array($0.claims.keys) }
            // If the store does not answer, the leases run out.
            if !claims.isEmpty { try? await self.store.renew(claims) }
        }
    }

    /// Sweeps each minute, and more often for a while after a replica has ended.
    private func sweepRegularly() async {
        var (lastSweep, watchEnd) = (Uptime?.none, Uptime.now)
        var alive = self.replicas()
        repeat {
            let now = Uptime.now
            let count = self.replicas()
            if count < alive { watchEnd = now + .seconds(120) }
            alive = count
            if now < watchEnd || lastSweep.map({ now - $0 >= .seconds(60) }) ?? true {
                await self.sweep()
                lastSweep = now
            }
        } while (try? await Task.sleep(for: self.isShared ? self.leases.renewalInterval : .seconds(60))) != nil
    }

    /// Returns abandoned slices. Ends batches that have expired, resumes those whose pause is over, and deletes old ones.
    package func sweep() async {
        do throws(GatewayError) {
            let abandoned = try await self.store.returnAbandoned()
            if abandoned > 0 { self.metrics.takeovers.increment(by: abandoned) }
            self.noticeStep(of: try await self.store.due().time)
            var overdue: [Batch] = []
            repeat {
                overdue = self.isInGrace ? [] : try await self.store.overdue(limit: 100)
                for batch in overdue {
                    _ = try await self.store.apply(.expire, to: batch.id, of: nil)
                }
            } while overdue.count == 100 && !Task.isCancelled
            let paused = try await self.store.paused(for: [.failover, .upstreamCredentials], limit: 10_000)
            for batch in paused where self.mayResume(batch) {
                _ = try await self.store.apply(.resume(keyID: nil), to: batch.id, of: nil)
            }
            var deleted = 0
            repeat {
                deleted = try await self.store.purge(limit: Self.purgedAtOnce)
            } while deleted == Self.purgedAtOnce && !Task.isCancelled
            self.metrics.show(try await self.store.summary())
            // Another replica may have left something that is due.
            self.wake()
        } catch {
            self.outage.failed(error)
        }
    }

    /// True if the reason for a pause is gone: FCM's refusal of a credential that was replaced since, or a failover.
    private func mayResume(_ batch: Batch) -> Bool {
        switch batch.reason {
        case .failover: return self.configuration.resumesAfterFailover
        case .upstreamCredentials:
            let profile = self.directory.snapshot.tenants[batch.tenant]
            return profile.map { ($0.credentialFingerprint ?? "") != batch.credential } ?? false
        case .caller, .canary, .restored, .abandoned, .byOperator, .keyRevoked, .tenantDisabled, nil: return false
        }
    }
}

extension TenantProfile {
    /// The project whose quota its messages use. A legacy upstream has no project.
    fileprivate var pausedProject: String {
        self.tenant.upstream == .v1 ? "v1/\(self.v1ProjectID ?? "")" : "legacy/\(self.id.text)"
    }

    /// The fingerprint of the credential that its messages are sent with.
    fileprivate var credentialFingerprint: String? {
        self.storedCredentials.last { $0.kind == self.tenant.upstream }?.fingerprint
    }
}

/// The metrics of batches.
struct BatchMetrics: Sendable {
    private enum Outcome: String, CaseIterable {
        case accepted, rejected, unknown
    }

    let dwell: Timer
    let quotaPauses: Counter
    let takeovers: Counter
    private let recipients: [Outcome: Counter]
    private let states: [Batch.State: Meter]
    private let waiting: Meter
    private let oldestDue: Meter

    init(_ metrics: GatewayMetrics) {
        self.dwell = metrics.timer(.batchDwell)
        self.quotaPauses = metrics.counter(.batchQuotaPauses)
        self.takeovers = metrics.counter(.batchTakeovers)
        self.recipients = metrics.counters(.batchRecipients, by: Outcome.self)
        self.states = metrics.gauges(.batches, by: Batch.State.self)
        self.waiting = metrics.gauge(.batchWaitingRecipients)
        self.oldestDue = metrics.gauge(.batchOldestDue)
    }

    func count(_ added: Batch.Counts) {
        for (outcome, count) in [
            (Outcome.accepted, added.accepted), (.rejected, added.rejected), (.unknown, added.unknown),
        ] where count > 0 { self.recipients[outcome]?.increment(by: count) }
    }

    func show(_ summary: BatchSummary) {
        for (state, meter) in self.states { meter.set(summary.batches[state] ?? 0) }
        self.waiting.set(summary.waiting)
        self.oldestDue.set(max(.zero, summary.oldestDue) / .seconds(1))
    }
}
