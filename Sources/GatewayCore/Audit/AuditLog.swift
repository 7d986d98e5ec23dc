package import Logging
import ServiceLifecycle
import Synchronization

/// The audit's one writer: takes records from everywhere, chains them, and hands them to the store in batches.
///
/// A record is on its way to the store within the flush interval; that interval is all that a killed process can lose.
/// When the store refuses, nothing more is reserved, so nothing more is done that could not be recorded; what was
/// already taken is kept and written when the store recovers.
package final class AuditLog: Service {
    /// How far the log's life has come.
    private enum Phase {
        /// Records are taken. Next: `closing`, `closed`.
        case open
        /// Nothing new is taken; what was promised a place is awaited. Next: `closed`.
        case closing
        /// The chain has ended.
        case closed
    }

    private struct State {
        var phase = Phase.open
        var isRunning = false
        var records: [AuditEntry] = []
        /// How much memory the records take that wait or are being written, in bytes.
        var heldBytes = 0
        var reserved = 0
        /// Records that the store is being given at this moment.
        var writing = 0
        var isFailing = false
        var commits: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// Records whose committer waits, by the committer's number.
        var strict: [(number: Int, entry: AuditEntry)] = []
        var nextNumber = 0

        /// Whether nothing is left to be written or awaited.
        var isDrained: Bool { self.reserved == 0 && self.records.isEmpty && self.strict.isEmpty }
    }

    private let store: any AuditStore
    private let sealer: AuditSealer
    private let clock: any WallClock
    private let configuration: AuditConfiguration
    private let metrics: AuditMetrics
    private let logger: Logger
    private let state = Mutex(State())
    private let wake: AsyncStream<Void>
    private let wakeContinuation: AsyncStream<Void>.Continuation
    /// When commits give up, in the order of their numbers.
    private let deadlines: AsyncStream<(number: Int, deadline: ContinuousClock.Instant)>
    private let deadlineContinuation: AsyncStream<(number: Int, deadline: ContinuousClock.Instant)>.Continuation

    /// A log that has not started.
    package init(
        store: any AuditStore,
        sealer: AuditSealer,
        clock: any WallClock,
        configuration: AuditConfiguration,
        metrics: AuditMetrics,
        logger: Logger
    ) {
        self.store = store
        self.sealer = sealer
        self.clock = clock
        self.configuration = configuration
        self.metrics = metrics
        self.logger = logger
        (self.wake, self.wakeContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (self.deadlines, self.deadlineContinuation) = AsyncStream.makeStream()
    }

    // MARK: Taking records

    /// Takes a place for a record to come; `nil` when the queue is full, the store refuses, or shutdown has begun.
    package func reserve() -> AuditReservation? {
        let isTaken = self.state.withLock { state in
            let waiting = state.records.count + state.reserved + state.writing
            guard state.phase == .open, !state.isFailing, waiting < self.configuration.queueCapacity,
                state.heldBytes < self.configuration.queueBytes
            else { return false }
            state.reserved += 1
            return true
        }
        return isTaken ? AuditReservation(log: self) : nil
    }

    /// Records something and returns when it is durable.
    ///
    /// A caller whose task is cancelled waits all the same: what it did is recorded even if nobody hears of it. Before
    /// ``run()`` has begun nothing is written and no time runs.
    ///
    /// - Throws: `auditUnavailable` when the store refuses, or takes longer than the configuration allows, or when
    ///   shutdown has begun; then the record is not written later, unless the store has it in its hands already.
    package func commit(_ record: AuditRecord) async throws(GatewayError) {
        let entry = AuditEntry(record)
        let deadline = ContinuousClock.now + self.configuration.commitTimeout
        let isDurable = await withCheckedContinuation { continuation in
            let number = self.state.withLock { state -> Int? in
                guard state.phase == .open else { return nil }
                state.nextNumber += 1
                state.commits[state.nextNumber] = continuation
                state.strict.append((state.nextNumber, entry))
                return state.nextNumber
            }
            guard let number else { return continuation.resume(returning: false) }
            self.deadlineContinuation.yield((number, deadline))
            self.wakeContinuation.yield()
        }
        guard isDurable else {
            throw GatewayError(.auditUnavailable, "The audit log can't be written, so nothing is done")
        }
    }

    /// Ends the waiting of commits whose time is up.
    private func expireCommits() async {
        for await commit in self.deadlines {
            guard (try? await Task.sleep(until: commit.deadline, clock: .continuous)) != nil else { return }
            self.finishCommit(commit.number, isDurable: false)
        }
    }

    private func finishCommit(_ number: Int, isDurable: Bool) {
        let continuation = self.state.withLock { state in
            state.strict.removeAll { $0.number == number }
            return state.commits.removeValue(forKey: number)
        }
        continuation?.resume(returning: isDurable)
    }

    /// Called by a reservation that was dropped.
    func release() {
        let isAwaited = self.state.withLock { state in
            state.reserved -= 1
            return state.phase == .closing
        }
        if isAwaited { self.wakeContinuation.yield() }
    }

    /// Called by a reservation that is used.
    func fillReserved(_ entry: AuditEntry) {
        let (phase, isNews) = self.state.withLock { state in
            state.reserved -= 1
            // The writer is awake already while records wait, unless it waits for the last of them.
            let isNews = state.records.isEmpty || state.phase == .closing
            if state.phase != .closed {
                state.records.append(entry)
                state.heldBytes += entry.byteCount
            }
            return (state.phase, isNews)
        }
        guard phase != .closed else {
            self.metrics.failed(1)
            self.logger.error(
                "A record came after the audit log had ended",
                metadata: ["action": "\(entry.record.action)"]
            )
            return
        }
        if isNews { self.wakeContinuation.yield() }
    }

    // MARK: Writing

    /// Opens this process's chain, closing those that earlier processes left open.
    ///
    /// - Throws: `storeUnavailable`.
    package func open() async throws(GatewayError) -> AuditChain {
        let heads = try await self.store.heads()
        for head in heads where head.state == .open {
            guard self.sealer.isGenuine(head) else {
                // Closing the chain would put a genuine seal on it and hide that somebody changed it.
                self.logger.error(
                    "The seal of an earlier process's audit chain is not genuine; the chain is left as it is",
                    metadata: ["writer": "\(head.writer)", "last_sequence": "\(head.sequence)"]
                )
                continue
            }
            var chain = head.chain
            var record = self.ownRecord("audit.recovered")
            record.object = "writer \(head.writer) ended after record \(head.sequence)"
            let chained = chain.append(record)
            try await self.store.append([chained], head: self.sealer.head(of: chain, state: .recovered))
            self.logger.warning(
                "An earlier process ended uncleanly; its audit chain was closed",
                metadata: ["writer": "\(head.writer)", "last_sequence": "\(head.sequence)"]
            )
        }
        return try await self.begin()
    }

    /// Begins a chain of this process's own.
    private func begin() async throws(GatewayError) -> AuditChain {
        var attemptsLeft = 10
        while true {
            var chain = AuditChain(writer: (try await self.store.heads().last?.writer ?? 0) + 1)
            let opened = chain.append(self.ownRecord("audit.opened"))
            do {
                try await self.store.append([opened], head: self.sealer.head(of: chain, state: .open))
                return chain
            } catch {
                // A command's chain may have taken the number since the heads were read.
                attemptsLeft -= 1
                guard error.code == .conflict, attemptsLeft > 0 else { throw error }
            }
        }
    }

    /// Writes until shutdown, then closes the chain.
    ///
    /// At shutdown it waits for the records that were promised a place. Runs once.
    ///
    /// - Throws: when the chain can't be opened or closed; failures between are retried and reported by metric and log.
    package func run() async throws {
        let isFirst = self.state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        precondition(isFirst, "The audit log runs once")
        defer { self.end() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.expireCommits() }
            try await self.write()
            group.cancelAll()
        }
    }

    private func write() async throws {
        var chain = try await self.open()
        await withGracefulShutdownHandler {
            for await _ in self.wake {
                // Wait a moment, so that one transaction holds many records.
                try? await Task.sleep(for: self.configuration.flushInterval)
                while !(await self.flush(&chain)) {
                    try? await Task.sleep(for: self.configuration.retryInterval)
                    if Task.isCancelled { break }
                }
                if self.state.withLock({ $0.phase == .closing && $0.isDrained }) { break }
            }
        } onGracefulShutdown: {
            self.beginClosing()
        }
        // A cancelled task comes here with records that still wait.
        self.beginClosing()
        guard await self.flush(&chain) else {
            throw GatewayError(.storeUnavailable, "The audit log can't be written, so its chain stays open")
        }
        let closed = chain.append(self.ownRecord("audit.closed"))
        try await self.store.append([closed], head: self.sealer.head(of: chain, state: .closed))
    }

    private func beginClosing() {
        self.state.withLock { state in
            if state.phase == .open { state.phase = .closing }
        }
        self.wakeContinuation.yield()
    }

    /// Turns away whoever comes or waits from now on.
    private func end() {
        let (commits, lost) = self.state.withLock { state in
            defer { (state.phase, state.commits, state.strict, state.records) = (.closed, [:], [], []) }
            state.heldBytes = 0
            return (state.commits.values, state.records.count)
        }
        for continuation in commits { continuation.resume(returning: false) }
        guard lost > 0 else { return }
        self.metrics.failed(lost)
        self.logger.error("The audit log ended before all was written", metadata: ["records": "\(lost)"])
    }

    /// Writes what has gathered; `false` when the store refused, and then the records are kept.
    private func flush(_ chain: inout AuditChain) async -> Bool {
        let (records, strict) = self.state.withLock { state in
            defer { (state.records, state.strict) = ([], []) }
            state.writing = state.records.count
            return (state.records, state.strict)
        }
        self.metrics.queued(records.count + strict.count)
        if records.isEmpty, strict.isEmpty, !self.state.withLock({ $0.isFailing }) { return true }

        var longer = chain
        var chained: [ChainedAuditRecord] = []
        chained.reserveCapacity(records.count + strict.count)
        for entry in records { chained.append(longer.append(entry)) }
        for item in strict { chained.append(longer.append(item.entry)) }
        let start = ContinuousClock.now
        do {
            try await self.store.append(chained, head: self.sealer.head(of: longer, state: .open))
            chain = longer
            let written = records.reduce(0) { $0 + $1.byteCount }
            self.state.withLock { state in
                state.isFailing = false
                state.writing = 0
                state.heldBytes -= written
            }
            self.metrics.queued(0)
            self.metrics.wrote(chained.count, in: ContinuousClock.now - start)
            for item in strict { self.finishCommit(item.number, isDurable: true) }
            return true
        } catch {
            self.state.withLock { state in
                state.isFailing = true
                state.writing = 0
                state.records = records + state.records
            }
            for item in strict { self.finishCommit(item.number, isDurable: false) }
            self.metrics.failed(chained.count)
            self.logger.error("The audit log can't be written", metadata: ["cause": "\(error.message)"])
            return false
        }
    }

    private func ownRecord(_ action: String) -> AuditRecord {
        AuditRecord(
            time: self.clock.now(),
            tenant: nil,
            principal: "gateway",
            action: action,
            outcome: .done,
            requestID: ""
        )
    }
}
