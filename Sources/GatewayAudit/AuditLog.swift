package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// The audit's one writer: takes records from everywhere, chains them, and hands them to the store in batches.
///
/// A record is on its way to the store within the flush interval. A killed process loses the records of this interval, and
/// those of requests that were under way.
/// When the store refuses, records go to the spool. When that refuses as well, nothing more is reserved, so nothing
/// more is done that could not be recorded; what was already taken is kept and written when one of them recovers.
package final class AuditLog: Service {
    /// A place in the audit's queue, taken before something is done so that it can be recorded afterwards.
    ///
    /// A place that is dropped without being used becomes free again.
    package struct Reservation: ~Copyable, Sendable {
        private let log: AuditLog
        /// The tenant's uid.
        private let tenant: UInt64
        private var isFilled = false

        init(log: AuditLog, tenant: UInt64) {
            (self.log, self.tenant) = (log, tenant)
        }

        deinit {
            if !self.isFilled { self.log.release(of: self.tenant) }
        }

        /// Fills the place with a record, which is encoded here: on the thread that made its texts, outside the log's
        /// lock.
        package consuming func fill(_ record: borrowing AuditRecord) {
            self.isFilled = true
            self.log.fillReserved(AuditChain.Entry(record), of: self.tenant)
        }

        /// Fills the place with the record of something that the gateway refused, or counts it in a summary where the
        /// tenant has refused too much lately; returns the id of the summary's record then.
        package consuming func fill(refusal record: AuditRecord) -> String? {
            self.isFilled = true
            return self.log.fillReserved(refusal: record, of: self.tenant)
        }
    }

    /// The phase of the log's life.
    enum Phase {
        /// Records are taken. Next: `closing`, `closed`.
        case open
        /// Nothing new is taken; what was promised a place is awaited. Next: `closed`.
        case closing
        /// The chain has ended.
        case closed
    }

    /// The end of a wait for the writer.
    enum CommitEnd {
        /// The record is in the store.
        case durable
        /// It is not, and will not be.
        case refused
        /// Time was up while the store had it in its hands.
        case unknown
    }

    /// Stands for the tenant in records of the gateway and of operators, whose number no share bounds.
    package static let noTenant: UInt64 = 0

    private typealias Deadline = (number: Int, deadline: Uptime)

    struct State {
        var phase = Phase.open
        /// True if this process's chain is stored, and all records of earlier processes are.
        var isChainOpen = false
        var isRunning = false
        var records: [AuditChain.Entry] = []
        /// The memory of the records that wait or are being written, in bytes.
        var heldBytes = 0
        var reserved = 0
        /// Each tenant's share of the queue and the spool, by its uid.
        var shares: [UInt64: AuditShare] = [:]
        /// Summaries of refused requests that have yet to be recorded; each holds a place.
        var summaries: [AuditShare.Summary.Key: AuditShare.Summary] = [:]
        /// Records that the store is being given at this moment.
        var writing = 0
        var isFailing = false
        /// Since when something waits and nothing was taken that waited: by the store, or by the spool where that will
        /// do.
        var waitingSince: Uptime?
        var commits: [Int: CheckedContinuation<CommitEnd, Never>] = [:]
        /// Records whose committer waits, by the committer's number.
        var strict: [(number: Int, entry: AuditChain.Entry)] = []
        /// Waits until what was recorded so far is durable, by number.
        var settling: [Int] = []
        var nextNumber = 0
        /// Records that the end of the log left behind.
        var left = (inSpool: 0, lost: 0)

        var isDrained: Bool { self.reserved == 0 && self.records.isEmpty && self.strict.isEmpty }

        mutating func beginWaiting() {
            if self.waitingSince == nil { self.waitingSince = .now }
        }

        /// Takes a record, until the chain has ended, in a tenant's place.
        mutating func add(_ entry: AuditChain.Entry, inPlaceOf tenant: UInt64 = AuditLog.noTenant) {
            guard self.phase != .closed else { return }
            // While records wait, the time is noted already.
            if self.records.isEmpty { self.beginWaiting() }
            self.records.append(entry)
            self.heldBytes += entry.byteCount
            // A tenant's place takes that tenant's records; one of the gateway or an operator takes any.
            if tenant != AuditLog.noTenant {
                self.shares[tenant, default: AuditShare()].bytes += entry.byteCount
            } else {
                self.shares[entry.tenantUID, default: AuditShare()].enter(entry)
            }
        }

        /// Records have left the queue: their tenants' shares have room again.
        mutating func leave(_ entries: ArraySlice<AuditChain.Entry>) {
            guard let last = entries.last else { return }
            let now = last.time.microseconds * 1_000
            for entry in entries {
                self.shares[entry.tenantUID]?.leave(entry)
                if self.shares[entry.tenantUID]?.isWhole(at: now) == true { self.shares[entry.tenantUID] = nil }
            }
        }

        mutating func forgetSpooled() {
            for tenant in self.shares.keys { self.shares[tenant]?.spooledBytes = 0 }
        }

        mutating func takeCommit(_ number: Int) -> CheckedContinuation<CommitEnd, Never>? {
            self.strict.removeAll { $0.number == number }
            self.settling.removeAll { $0 == number }
            return self.commits.removeValue(forKey: number)
        }
    }

    /// True if sends are recorded before they are made, too.
    package let isStrict: Bool
    let store: any AuditStore
    let spool: AuditSpool?
    let sealer: AuditSealer
    let clock: any WallClock
    let configuration: Configuration
    let writtenRecords: Counter
    let spooledRecords: Counter
    /// Records that the store refused, once for each attempt.
    let refusedRecords: Counter
    let spoolBytes: Meter
    let queuedRecords: Meter
    let writeDuration: Timer
    let logger: Logger
    let outage: OutageLog
    private let checkpoint: Int
    /// `nil` where no other replica writes to the store.
    let sharing: AuditSharing?
    let state = Mutex(State())
    let worker: AuditStoreWorker
    private let wake: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)
    /// Yields when a summary has begun.
    private let summarised = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// When commits give up, in the order of their numbers.
    private let deadlines = AsyncStream.makeStream(of: Deadline.self)
    /// Finishes when the chain is open, or when the log ends without one.
    private let opening = AsyncStream.makeStream(of: Void.self)

    /// A log that has not started; without a spool, what the store refuses waits in memory.
    ///
    /// The first record of this process's chain names the latest checkpoint, 0 for none.
    package init(
        store: any AuditStore,
        spool: AuditSpool? = nil,
        sealer: AuditSealer,
        clock: any WallClock,
        configuration: Configuration,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger,
        afterCheckpoint checkpoint: Int = 0,
        sharing: AuditSharing? = nil
    ) {
        self.isStrict = configuration.mode == .strict
        (self.store, self.spool, self.sealer) = (store, spool, sealer)
        (self.clock, self.configuration) = (clock, configuration)
        self.writtenRecords = metrics.counter(.auditRecords, "written")
        self.spooledRecords = metrics.counter(.auditRecords, "spooled")
        self.refusedRecords = metrics.counter(.auditRecords, "refused")
        self.spoolBytes = metrics.gauge(.auditSpoolBytes)
        self.queuedRecords = metrics.gauge(.auditQueue)
        self.writeDuration = metrics.timer(.auditWriteDuration, "written")
        self.logger = logger
        self.outage = OutageLog("The audit log can't be written", end: "The audit log is written again", logger)
        let wake = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.wake = wake
        self.worker = AuditStoreWorker { wake.continuation.yield() }
        (self.checkpoint, self.sharing) = (checkpoint, sharing)
    }

    // MARK: Taking records

    /// Waits until what earlier processes left is in the store and this one's chain is open; whether it is, which it is
    /// not when the log has ended, or the caller was cancelled.
    ///
    /// Records are taken before that as well, but a crash would lose them: requests are to be served afterwards only.
    /// One caller may ask, once.
    package func whenOpen() async -> Bool {
        for await _ in self.opening.stream {}
        return self.state.withLock { $0.isChainOpen }
    }

    /// Records something and returns when it is durable.
    ///
    /// A caller whose task is cancelled waits all the same: its action is recorded even if its client is gone. Throws
    /// `auditUnavailable` when the store refuses, or takes longer than the configuration allows, or when shutdown has
    /// begun; then the record is not written later, unless the store has it in its hands already. Before ``run()`` has
    /// begun nothing is written and no time runs.
    package func commit(_ record: AuditRecord) async throws(GatewayError) {
        guard case .durable = await self.end(ofCommitting: record) else { throw Self.unavailable }
    }

    /// Commits that something is about to be done; throws `auditUnavailable`, and then it must not be done.
    ///
    /// If the store answers too late it may have the intent all the same. A record that the action was not done then
    /// follows, so that no reader takes the intent for something that was done.
    package func announce(refused: AuditRecord) async throws(GatewayError) {
        switch await self.end(ofCommitting: refused.intent) {
        case .durable: return
        case .refused: throw Self.unavailable
        case .unknown:
            let entry = AuditChain.Entry(refused)
            self.state.withLock { $0.add(entry) }
            self.wake.continuation.yield()
            throw Self.unavailable
        }
    }

    private func end(ofCommitting record: AuditRecord) async -> CommitEnd {
        let entry = AuditChain.Entry(record)
        return await self.wait { state, number in
            guard state.phase == .open else { return false }
            state.strict.append((number, entry))
            if self.isStrict { state.beginWaiting() }
            return true
        }
    }

    /// Waits until everything that was recorded so far is durable, in the store or in the spool; whether it is.
    ///
    /// It gives up when a commit would have to; what was recorded is written all the same.
    @discardableResult
    package func settle() async -> Bool {
        let end = await self.wait { state, number in
            guard state.phase != .closed else { return false }
            state.settling.append(number)
            return true
        }
        return end == .durable
    }

    /// Waits for something that the writer does, for as long as a commit may take.
    private func wait(for entering: (inout State, _ number: Int) -> Bool) async -> CommitEnd {
        let deadline = Uptime.now + self.configuration.commitTimeout
        return await withCheckedContinuation { continuation in
            let number = self.state.withLock { state -> Int? in
                guard entering(&state, state.nextNumber + 1) else { return nil }
                state.nextNumber += 1
                state.commits[state.nextNumber] = continuation
                return state.nextNumber
            }
            guard let number else { return continuation.resume(returning: .refused) }
            self.deadlines.continuation.yield((number, deadline))
            self.wake.continuation.yield()
        }
    }

    private func expireCommits() async {
        for await commit in self.deadlines.stream {
            // Most have ended by the time that they are looked at, so few need a timer.
            guard self.state.withLock({ $0.commits[commit.number] != nil }) else { continue }
            guard (try? await Task.sleep(until: commit.deadline)) != nil else { return }
            let (continuation, end) = self.state.withLock { state in
                let waiting = state.strict.count + state.settling.count
                let continuation = state.takeCommit(commit.number)
                let isTaken = waiting == state.strict.count + state.settling.count
                return (continuation, isTaken ? CommitEnd.unknown : .refused)
            }
            continuation?.resume(returning: end)
        }
    }

    // MARK: Places

    /// Takes a place for a tenant's record to come; `nil` when the queue or the tenant's share of it is full, the store
    /// refuses, or shutdown has begun.
    package func reserve(for tenant: UInt64 = noTenant) -> Reservation? {
        let (isTaken, isPressed) = self.state.withLock { state in
            let waiting = state.records.count + state.reserved + state.writing
            let (capacity, bytes) = (self.configuration.queueRecords, self.configuration.queueBytes)
            // Half of what one tenant may take.
            let isPressed = waiting >= capacity / 4 || state.heldBytes >= bytes / 4
            guard state.phase == .open, !state.isFailing, waiting < capacity, state.heldBytes < bytes
            else { return (false, isPressed) }
            guard tenant == Self.noTenant || state.shares[tenant, default: AuditShare()].reserve(self.configuration)
            else { return (false, isPressed) }
            state.reserved += 1
            return (true, isPressed)
        }
        // A store that is slow now would soon cost sends.
        if isPressed { self.worker.cutShort() }
        return isTaken ? Reservation(log: self, tenant: tenant) : nil
    }

    /// Takes a place for the outcome of an operator's change; `nil` when shutdown has begun.
    ///
    /// It does not count against the queue's bounds: what fills the queue is most likely what the operator is about to
    /// end, and there are few of them.
    package func reserveForChange() -> Reservation? {
        let isTaken = self.state.withLock { state in
            guard state.phase == .open else { return false }
            state.reserved += 1
            return true
        }
        return isTaken ? Reservation(log: self, tenant: Self.noTenant) : nil
    }

    /// Once the log has ended: records that the spool holds for the next start, and those that are lost.
    package var left: (inSpool: Int, lost: Int) { self.state.withLock { $0.left } }

    /// Called by a reservation that was dropped.
    func release(of tenant: UInt64) {
        let isAwaited = self.state.withLock { state in
            state.reserved -= 1
            if tenant != Self.noTenant { state.shares[tenant]?.records -= 1 }
            return state.phase == .closing
        }
        if isAwaited { self.wake.continuation.yield() }
    }

    /// Called by a reservation that is used.
    func fillReserved(_ entry: AuditChain.Entry, of tenant: UInt64) {
        let (phase, isNews) = self.state.withLock { state in
            state.reserved -= 1
            // The writer is awake already while records wait, unless it waits for the last of them.
            let isNews = state.records.isEmpty || state.phase == .closing
            state.add(entry, inPlaceOf: tenant)
            return (state.phase, isNews)
        }
        guard phase != .closed else {
            self.refusedRecords.increment()
            self.logger.error(
                "A record came after the audit log had ended",
                metadata: ["action": "\(entry.record.action)"]
            )
            return
        }
        if isNews { self.wake.continuation.yield() }
    }

    // MARK: Refused requests

    /// Uses a reservation for a request of which nothing left, or releases it: beyond what the tenant's refused
    /// requests may write, the request is counted in a summary. Returns the message id of that summary's record, empty
    /// where it has none.
    func fillReserved(refusal record: AuditRecord, of tenant: UInt64) -> String? {
        let now = record.time.microseconds * 1_000
        let (id, isFirst) = self.state.withLock { state -> (String?, Bool) in
            // A summary that began now would not be written any more.
            guard state.phase == .open, tenant != Self.noTenant,
                state.shares[tenant]?.mayWriteRefusals(at: now) == false
            else { return (nil, false) }
            let key = AuditShare.Summary.Key(record)
            guard state.summaries[key]?.add(record) == nil else {
                state.reserved -= 1
                state.shares[tenant]?.records -= 1
                return (state.summaries[key]?.record.messageID ?? "", false)
            }
            state.summaries[key] = AuditShare.Summary(record)
            return (record.messageID ?? "", state.summaries.count == 1)
        }
        if isFirst { self.summarised.continuation.yield() }
        guard id == nil else { return id }
        let entry = AuditChain.Entry(record)
        self.state.withLock { $0.shares[tenant]?.chargeRefusal(entry.byteCount, at: now) }
        self.fillReserved(entry, of: tenant)
        return nil
    }

    /// Records the summaries once a second, until the task is cancelled.
    private func writeSummaries() async {
        for await _ in self.summarised.stream {
            try? await Task.sleep(for: self.configuration.summaryInterval)
            self.fillSummaries()
        }
    }

    private func fillSummaries() {
        let summaries = self.state.withLock { state in
            defer { state.summaries = [:] }
            return state.summaries.values
        }
        for summary in summaries { self.fillReserved(AuditChain.Entry(summary.record), of: summary.record.tenantUID) }
    }

    /// True if a record has waited for two seconds, or for the commit timeout if that is longer, and nothing was
    /// recorded meanwhile: neither by the store nor by the spool, or in strict mode not by the store.
    ///
    /// The writer keeps trying, with the waiting records or with an empty batch if they were given up; the first
    /// success ends the stall.
    package func isStalled(at now: Uptime) -> Bool {
        guard let since = self.state.withLock({ $0.waitingSince }) else { return false }
        return now - since >= max(.seconds(2), self.configuration.commitTimeout)
    }

    /// Notes that the store, or the spool where that will do, took what it was given.
    func noteTaken() {
        self.state.withLock { state in
            let isWaiting = !state.records.isEmpty || self.isStrict && !state.strict.isEmpty
            state.waitingSince = isWaiting ? .now : nil
        }
    }

    package static var unavailable: GatewayError {
        GatewayError(.auditUnavailable, "The audit log can't be written, so nothing is done")
    }

    // MARK: Writing

    /// Opens this process's chain, closing those that earlier processes left open; throws `storeUnavailable`.
    package func open() async throws(GatewayError) -> AuditChain {
        if self.sharing != nil { return try await self.openBesideOthers() }
        let heads = try await self.store.heads()
        let spooled = try await self.spool?.inspect() ?? AuditSpool.Finding()
        for head in heads where head.state == .open {
            guard self.sealer.isGenuine(head) else {
                // Closing the chain would put a genuine seal on it and hide that somebody changed it.
                self.logger.error(
                    "The seal of an earlier process's audit chain is not genuine; the chain is left as it is",
                    metadata: [
                        "writer": .stringConvertible(head.writer), "last_sequence": .stringConvertible(head.sequence),
                    ]
                )
                continue
            }
            var chain = head.chain
            let rest = head.writer == spooled.writer ? try await self.replaySpool(onto: &chain) : []
            let chained = rest + [chain.append(.recovered(at: self.clock.now()))]
            try await self.store.append(chained, head: self.sealer.head(of: chain, state: .recovered))
            self.logger.warning(
                "An earlier process ended uncleanly; its audit chain was closed",
                metadata: [
                    "writer": .stringConvertible(head.writer), "last_sequence": .stringConvertible(chain.sequence - 1),
                    "from_spool": .stringConvertible(chain.sequence - 1 - head.sequence),
                ]
            )
        }
        var chain = try await self.begin()
        // A chain that was open has been given everything just now, unless its seal is not genuine.
        let head = heads.first { $0.writer == spooled.writer }
        let isReplayed = head.map { $0.state == .open && self.sealer.isGenuine($0) } ?? false
        try await self.emptySpool(spooled, isReplayed: isReplayed, hasChain: head != nil, &chain)
        return chain
    }

    /// Begins a chain of this process's own, which may continue a closed one.
    func begin(continuing writer: Int = 0) async throws(GatewayError) -> AuditChain {
        var attemptsLeft = 10
        while true {
            // An end may have been deleted; the records still have its writer's number. An intruder may have written
            // any number.
            let writers = try await self.store.heads().map(\.writer) + self.store.writersWithRecords()
            var chain = AuditChain(writer: (writers.filter { $0 < 1 << 48 }.max() ?? 0) + 1)
            // Read after the chains before it: none may name an earlier checkpoint than those.
            let checkpoint = try await self.latestCheckpoint()
            var record = AuditRecord(.auditOpened, at: self.clock.now())
            (record.afterCheckpoint, record.continuesWriter) = (checkpoint, writer)
            let opened = chain.append(record)
            do {
                let head = self.sealer.head(of: chain, state: .open)
                if let sharing = self.sharing {
                    try await sharing.registry.begin(opened, head: head, by: sharing.replica)
                } else {
                    try await self.store.append([opened], head: head)
                }
                return chain
            } catch {
                // A command's chain may have taken the number since the heads were read.
                attemptsLeft -= 1
                guard error.code == .conflict, attemptsLeft > 0 else { throw error }
            }
        }
    }

    /// Returns the checkpoint that the next chain follows; other replicas may have made some since the start.
    private func latestCheckpoint() async throws(GatewayError) -> Int {
        var number = self.checkpoint
        guard self.sharing != nil, number > 0 else { return number }
        while let later = try await self.store.checkpoints(after: number, limit: 1_000).last?.number,
            later < AuditCheckpoint.numberLimit
        {
            number = later
        }
        return number
    }

    /// Writes until shutdown, waits for the records that were promised a place, then closes the chain. Runs once.
    ///
    /// Throws when the chain can't be opened or closed; failures between are retried and reported by metric and log.
    package func run() async throws {
        let isFirst = self.state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        precondition(isFirst, "The audit log runs once")
        defer { self.end() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.expireCommits() }
            group.addTask { await self.writeSummaries() }
            group.addTask { await self.worker.run() }
            try await self.write()
            group.cancelAll()
        }
    }

    private func write() async throws {
        var writer = WriterState(chain: try await self.open())
        self.state.withLock { $0.isChainOpen = true }
        self.opening.continuation.finish()
        await withGracefulShutdownHandler {
            for await _ in self.wake.stream {
                // Wait a moment, so that one transaction holds many records. In strict mode the transaction under way
                // is moment enough.
                if !self.isStrict { try? await Task.sleep(for: self.configuration.flushInterval) }
                while !(await self.flush(&writer)) {
                    try? await Task.sleep(for: self.configuration.retryInterval)
                    if Task.isCancelled { break }
                }
                if writer.isDirect, self.state.withLock({ $0.phase == .closing && $0.isDrained }) { break }
            }
        } onGracefulShutdown: {
            self.beginClosing()
        }
        // A cancelled task comes here with records that still wait.
        self.beginClosing()
        guard await self.flush(&writer) else {
            throw GatewayError(.storeUnavailable, "The audit log can't be written, so records are lost")
        }
        do throws(GatewayError) {
            guard writer.isDirect else { throw GatewayError(.storeUnavailable, "The spool holds what the store lacks") }
            try await self.close(&writer)
        } catch {
            guard error.code != .conflict else { throw error }
            // Nothing is lost: a process that was killed leaves no more than this.
            self.state.withLock { $0.left.inSpool = writer.lag }
            self.logger.warning(
                "The store is away, so the audit's chain stays open; the next start writes what is spooled and closes it",
                metadata: ["cause": "\(error.message)", "spooled_records": .stringConvertible(writer.lag)]
            )
        }
    }

    private func close(_ writer: inout WriterState) async throws(GatewayError) {
        var movesLeft = Self.maxMoves
        while true {
            var chain = writer.tail
            let closed = chain.append(AuditRecord(.auditClosed, at: self.clock.now()))
            do throws(GatewayError) {
                return try await self.store.append([closed], head: self.sealer.head(of: chain, state: .closed))
            } catch {
                guard error.code == .conflict, movesLeft > 0, await self.move(&writer) != nil else { throw error }
                movesLeft -= 1
            }
        }
    }

    private func beginClosing() {
        self.state.withLock { state in
            if state.phase == .open { state.phase = .closing }
        }
        self.fillSummaries()
        self.wake.continuation.yield()
    }

    private func end() {
        self.opening.continuation.finish()
        let (commits, lost) = self.state.withLock { state in
            defer {
                (state.phase, state.commits, state.strict, state.records) = (.closed, [:], [], [])
                state.shares = [:]
                state.settling = []
            }
            (state.heldBytes, state.left.lost) = (0, state.records.count)
            return (state.commits.values, state.records.count)
        }
        for continuation in commits { continuation.resume(returning: .refused) }
        guard lost > 0 else { return }
        self.refusedRecords.increment(by: lost)
        self.logger.error("The audit log ended before all was written", metadata: ["records": .stringConvertible(lost)])
    }
}

extension AuditLog {
    /// The section `audit`: how records are queued, written, spooled, signed and removed.
    package struct Configuration: Sendable, Equatable {
        /// When a send's record must be in the store; operators' changes are always recorded strictly.
        package enum Mode: String, Sendable, CaseIterable {
            /// A place in the queue is reserved before the upstream call, and one record is written after it.
            case bounded
            /// An intent is committed before the upstream call and the outcome after it.
            case strict
        }

        package var mode = Mode.bounded
        package var retentionDays = 400
        /// The time between two signed checkpoints while there are new records.
        package var checkpointInterval = Duration.seconds(60)
        /// The second place that records are written to: `stdout`, `file:` and a path, or nothing.
        package var sink = ""
        /// The time that a record may wait for others to share its transaction.
        package var flushInterval = Duration.milliseconds(10)
        /// The time that a commit may take before it counts as refused.
        package var commitTimeout = Duration.seconds(2)
        /// The time that the store may take for a batch before the records go to the spool.
        package var spoolAfter = Duration.milliseconds(100)
        /// The most records that may wait or be reserved.
        package var queueRecords = 10_000
        /// The most bytes of records that may wait; what was promised a place before it was reached is taken beyond it.
        package var queueBytes = 64 << 20
        /// The directory of the spool; empty for the data directory.
        package var spoolDir = ""
        /// The most bytes that the spool holds.
        package var spoolBytes = 64 << 20
        /// The time between two summaries of refused requests; no key sets it.
        package var summaryInterval = Duration.seconds(1)
        /// The pause before a refused write is repeated; no key sets it.
        package var retryInterval = Duration.milliseconds(200)

        package init() {}

        package static let sinkOutput = "stdout"
        package static let sinkFileScheme = "file:"

        /// The path of the second sink, if it is a file.
        package var sinkFile: String? {
            guard self.sink.hasPrefix(Self.sinkFileScheme) else { return nil }
            return String(self.sink.dropFirst(Self.sinkFileScheme.count))
        }
    }
}
