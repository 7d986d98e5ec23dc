package import Logging
import Metrics
import ServiceLifecycle

/// Removes records that are older than they are to be kept: at the start and once a day, little by little. Checkpoints
/// that are as old go with the next ones that are made.
package final class AuditRetentionService: Service {
    /// Records of one transaction: few enough that a send's record waits for milliseconds.
    private static let step = 1_000
    /// A pause between two transactions, for those who wait.
    private static let pause = Duration.milliseconds(20)
    private static let interval = Duration.seconds(86_400)
    /// The most that the clock may run ahead of the process's uptime.
    private static let maxClockDrift = Duration.seconds(86_400)

    /// The records that one pass has removed.
    private struct Removed {
        var records = 0
        var writers: [Int] = []
        /// The beginning of the chain that is being shortened.
        var current = AuditChain.Position(writer: 0, sequence: 0)

        mutating func add(_ count: Int, of writer: Int) {
            self.records += count
            if self.writers.last != writer { self.writers.append(writer) }
        }

        /// The writers as they are told.
        var list: String {
            let (first, last) = (self.writers.first ?? 0, self.writers.last ?? 0)
            return first == last ? "\(first)" : "\(first)-\(last)"
        }
    }

    private let store: any AuditStore
    private let signer: AuditSigner
    private let sealer: AuditSealer
    private let audit: AuditLog
    private let checkpointer: AuditCheckpointer
    private let clock: any WallClock
    private let retention: Duration
    /// `nil` where no other replica shares the store.
    private let leadership: (any Leadership)?
    private let leadInterval: Duration
    private let alarm: AuditAlarm
    private let removedRecords: Counter
    private let logger: Logger
    private let started: (wall: Timestamp, uptime: Uptime)

    /// A service that removes while this replica leads, and asks after each `leadInterval` whether it does now; one
    /// without `leadership` removes always.
    package init(
        store: any AuditStore,
        signer: AuditSigner,
        sealer: AuditSealer,
        audit: AuditLog,
        checkpointer: AuditCheckpointer,
        clock: any WallClock,
        retention: Duration,
        leadership: (any Leadership)? = nil,
        leadInterval: Duration = .seconds(60),
        alarm: AuditAlarm = AuditAlarm(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        (self.store, self.signer, self.sealer) = (store, signer, sealer)
        (self.audit, self.checkpointer) = (audit, checkpointer)
        (self.clock, self.retention) = (clock, retention)
        (self.leadership, self.leadInterval, self.alarm) = (leadership, leadInterval, alarm)
        self.removedRecords = metrics.counter(.auditRecordsRemoved)
        self.logger = logger
        self.started = (clock.now(), .now)
    }

    /// Removes what is too old now and once a day, until shutdown; where replicas share the store, while this one
    /// leads.
    package func run() async throws {
        let pause = self.leadership == nil ? Self.interval : self.leadInterval
        var last: Uptime?
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let now = Uptime.now
            // A new leader has made no pass yet, or made one a day ago.
            let isDue = last.map { now - $0 >= Self.interval } ?? true
            if isDue, await self.leadership?.isHeld() ?? true {
                last = now
                await self.pass()
            }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
        }
    }

    /// Removes what is too old now, and returns the number of records. A failure is logged; the next pass tries again.
    @discardableResult
    package func pass() async -> Int {
        var removed = Removed()
        // Once an intent is recorded, so is what comes of it.
        var record: AuditRecord?
        do throws(GatewayError) {
            let spans = try await AuditRetention.TimeSpan.all(in: self.store)
            let heads = try await self.store.heads()
            let retention = AuditRetention(self.retention, now: self.now, spans: spans)
            let removals = retention.removals(spans, heads: heads)
            let signatures = removals.isEmpty ? AuditSignatures() : try await self.store.signatures()
            if !removals.isEmpty {
                var announced = AuditRecord(.auditRemoved, at: self.clock.now())
                announced.object = "records of writers \(Removed(writers: removals.map(\.writer)).list)"
                // A kill in the middle leaves the intent, so that nothing goes without a word of it.
                try await self.audit.commit(announced.intent)
                record = announced
            }
            for removal in removals {
                guard let head = heads.first(where: { $0.writer == removal.writer }) else { break }
                let known = try await self.firstKnown(from: removal, signatures)
                try await self.remove(upTo: removal, head, known, &removed)
                if Task.isShuttingDownGracefully || Task.isCancelled { break }
            }
            self.checkpointer.remove(before: retention.limit)
        } catch {
            if error.code == .conflict { await self.resolve(removed) }
            record?.outcome = .failed
            self.logger.error("Old audit records can't be removed", metadata: ["cause": "\(error.message)"])
        }
        // Also what went before something failed is told.
        if let record { await self.tell(removed, record) }
        return removed.records
    }

    /// Finds out whose a record was that is not there or not as it was: somebody's who has changed the store, or that
    /// of a replica that took the lead while this one was paused, and has removed it as well.
    private func resolve(_ removed: Removed) async {
        guard let leadership = self.leadership else { return self.alarm.raise() }
        await leadership.resign()
        // If the store can't be read, the next pass finds out.
        guard let truncations = try? await self.store.truncations() else { return }
        let current = truncations.first { $0.writer == removed.current.writer }?.sequence ?? 0
        if current <= removed.current.sequence { self.alarm.raise() }
    }

    /// Returns the first place of a chain from another one on that a genuine checkpoint signs; `nil` for none.
    ///
    /// Of a chain that has ended, checkpoints sign no more than the end. Numbers rise without gaps and chains only
    /// grow, so a few checkpoints are read of very many.
    private func firstKnown(
        from place: AuditChain.Position,
        _ signatures: AuditSignatures
    ) async throws(GatewayError) -> AuditKnownHash? {
        guard var low = signatures.oldest?.number, var high = signatures.latest?.number else { return nil }
        var known: AuditKnownHash?
        while low <= high {
            let middle = low + (high - low) / 2
            guard let signed = try await self.store.checkpoints(after: middle - 1, limit: 1).first,
                let content = try? AuditVerification.content(of: signed, self.signer.publicKey)
            else { return nil }
            let head = content.heads.first { $0.writer == place.writer }
            if let head, head.sequence >= place.sequence {
                known = AuditKnownHash(sequence: head.sequence, hash: head.hash, checkpoint: signed.number)
                high = middle - 1
            } else if content.settledWriter >= place.writer {
                high = middle - 1
            } else {
                low = middle + 1
            }
        }
        return known
    }

    /// The clock's time, unless it was moved ahead while the process runs.
    private var now: Timestamp {
        let passed = Uptime.now - self.started.uptime
        return min(self.clock.now(), self.started.wall.advanced(by: passed + Self.maxClockDrift))
    }

    private func remove(
        upTo place: AuditChain.Position,
        _ head: AuditHead,
        _ known: AuditKnownHash?,
        _ removed: inout Removed
    ) async throws(GatewayError) {
        guard self.sealer.isGenuine(head) else {
            let reason = "The seal on the end of the chain of audit writer \(place.writer) is not genuine"
            throw GatewayError(.conflict, reason)
        }
        let truncation = try await self.store.truncations().first { $0.writer == place.writer }
        if let truncation, !self.signer.publicKey.isGenuine(truncation.signature, of: truncation.text) {
            let reason = "The chain of audit writer \(place.writer) begins with a truncation marker that is not genuine"
            throw GatewayError(.conflict, reason)
        }
        var chain = truncation?.chain ?? AuditChain(writer: place.writer)
        removed.current = AuditChain.Position(writer: chain.writer, sequence: chain.sequence)
        for step in try await self.steps(from: chain, upTo: place.sequence, head, known) {
            if Task.isShuttingDownGracefully || Task.isCancelled { break }
            try await self.store.remove(upTo: try self.signer.truncation(of: step, at: self.clock.now()))
            removed.add(step.sequence - chain.sequence, of: place.writer)
            self.removedRecords.increment(by: step.sequence - chain.sequence)
            chain = step
            removed.current.sequence = step.sequence
            try? await Task.sleep(for: Self.pause)
        }
    }

    /// Walks along the records that are to go, and on to the first place behind them that is signed, or to the sealed
    /// end.
    ///
    /// Changed records are evidence and stay: only records that hold are removed. A chain by itself proves nothing,
    /// since anybody can hash its records anew; one of its hashes must be known from elsewhere. Returns the places at
    /// which it may be cut, one after the other; none when it is time to end.
    private func steps(
        from chain: AuditChain,
        upTo last: Int,
        _ head: AuditHead,
        _ known: AuditKnownHash?
    ) async throws(GatewayError) -> [AuditChain] {
        let end = known?.sequence ?? head.sequence
        var walker = AuditWalker(from: chain, to: head, known: known.map { [$0] } ?? [])
        var steps: [AuditChain] = []
        while walker.chain.sequence < end {
            if Task.isShuttingDownGracefully || Task.isCancelled { return [] }
            let place = walker.chain.sequence
            let limit = min(Self.step, (place < last ? last : end) - place)
            let rows = try await self.store.walk(&walker, limit: limit)
            if rows.count < limit { walker.stop("the record is missing") }
            if case .tampered(let bad, _)? = walker.failure {
                let name = "Record \(bad.sequence) of audit writer \(bad.writer)"
                throw GatewayError(.conflict, "\(name) is not as it was written")
            }
            if walker.chain.sequence <= last { steps.append(walker.chain) }
            try? await Task.sleep(for: Self.pause)
        }
        return steps
    }

    private func tell(_ removed: Removed, _ announced: AuditRecord) async {
        var record = announced
        record.time = self.clock.now()
        record.object = "no records"
        if removed.records > 0 {
            record.object = "\(removed.records) records of writers \(removed.list)"
            self.logger.notice(
                "Old audit records were removed",
                metadata: ["records": .stringConvertible(removed.records), "writers": "\(removed.list)"]
            )
        }
        do {
            try await self.audit.commit(record)
        } catch {
            self.logger.error(
                "The removal of old audit records can't be recorded",
                metadata: ["cause": "\(error.message)"]
            )
        }
    }
}
