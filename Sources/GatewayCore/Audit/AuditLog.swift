package import Logging
import ServiceLifecycle
import Synchronization

/// The audit's one writer: takes records from everywhere, chains them, and hands them to the store in batches.
///
/// A record is on its way to the store within the flush interval; that interval is all that a killed process can lose.
/// When the store refuses, nothing more is reserved, so nothing more is done that could not be recorded; what was
/// already taken is kept and written when the store recovers.
package final class AuditLog: Service {
    private struct State {
        var records: [AuditRecord] = []
        var reserved = 0
        var isFailing = false
        var commits: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// Records whose committer waits, by the committer's number.
        var strict: [(number: Int, record: AuditRecord)] = []
        var nextNumber = 0
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
    }

    // MARK: Taking records

    /// Takes a place for a record to come; `nil` when the queue is full or the store refuses.
    package func reserve() -> AuditReservation? {
        let isTaken = self.state.withLock { state in
            guard !state.isFailing, state.records.count + state.reserved < self.configuration.queueCapacity else {
                return false
            }
            state.reserved += 1
            return true
        }
        return isTaken ? AuditReservation(log: self) : nil
    }

    /// Records something and returns when it is durable.
    ///
    /// - Throws: `auditUnavailable` when the store refuses, or takes longer than the configuration allows.
    package func commit(_ record: AuditRecord) async throws(GatewayError) {
        let number = self.state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let isDurable = await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.enqueueAndWait(record, number: number) }
            group.addTask {
                try? await Task.sleep(for: self.configuration.commitTimeout)
                return false
            }
            let first = await group.next() ?? false
            self.finishCommit(number, isDurable: false)
            group.cancelAll()
            return first
        }
        guard isDurable else {
            throw GatewayError(.auditUnavailable, "The audit log can't be written, so nothing is done")
        }
    }

    private func enqueueAndWait(_ record: AuditRecord, number: Int) async -> Bool {
        await withCheckedContinuation { continuation in
            self.state.withLock { state in
                state.commits[number] = continuation
                state.strict.append((number, record))
            }
            self.wakeContinuation.yield()
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
        self.state.withLock { $0.reserved -= 1 }
    }

    /// Called by a reservation that is used.
    func fillReserved(_ record: AuditRecord) {
        let wasEmpty = self.state.withLock { state in
            state.reserved -= 1
            state.records.append(record)
            return state.records.count == 1
        }
        if wasEmpty { self.wakeContinuation.yield() }
    }

    // MARK: Writing

    /// Opens this process's chain, closing those that earlier processes left open.
    ///
    /// - Throws: `storeUnavailable`.
    package func open() async throws(GatewayError) -> AuditChain {
        let heads = try await self.store.heads()
        for head in heads where head.state == .open {
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
        var chain = AuditChain(writer: (heads.last?.writer ?? 0) + 1)
        let opened = chain.append(self.ownRecord("audit.opened"))
        try await self.store.append([opened], head: self.sealer.head(of: chain, state: .open))
        return chain
    }

    /// Writes until shutdown, then closes the chain.
    ///
    /// - Throws: when the chain can't be opened; later failures are retried and reported by metric and log.
    package func run() async throws {
        var chain = try await self.open()
        await withGracefulShutdownHandler {
            for await _ in self.wake {
                // Wait a moment, so that one transaction holds many records.
                try? await Task.sleep(for: self.configuration.flushInterval)
                while !(await self.flush(&chain)) {
                    try? await Task.sleep(for: self.configuration.retryInterval)
                    if Task.isCancelled { break }
                }
            }
        } onGracefulShutdown: {
            self.wakeContinuation.finish()
        }
        _ = await self.flush(&chain)
        let closed = chain.append(self.ownRecord("audit.closed"))
        try await self.store.append([closed], head: self.sealer.head(of: chain, state: .closed))
    }

    /// Writes what has gathered; `false` when the store refused, and then the records are kept.
    private func flush(_ chain: inout AuditChain) async -> Bool {
        let (records, strict) = self.state.withLock { state in
            defer { (state.records, state.strict) = ([], []) }
            return (state.records, state.strict)
        }
        self.metrics.queued(records.count + strict.count)
        if records.isEmpty, strict.isEmpty, !self.state.withLock({ $0.isFailing }) { return true }

        var longer = chain
        let chained = (records + strict.map(\.record)).map { longer.append($0) }
        let start = ContinuousClock.now
        do {
            try await self.store.append(chained, head: self.sealer.head(of: longer, state: .open))
            chain = longer
            self.state.withLock { $0.isFailing = false }
            self.metrics.wrote(chained.count, in: ContinuousClock.now - start)
            for item in strict { self.finishCommit(item.number, isDurable: true) }
            return true
        } catch {
            self.state.withLock { state in
                state.isFailing = true
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
