import Logging
import Metrics
import Synchronization

extension AuditLog {
    private static let replayedRecords = 2_000

    /// The records that were taken from the queue to be written.
    private struct Batch {
        var records: [AuditChain.Entry]
        /// Records whose committers wait.
        var strict: [(number: Int, entry: AuditChain.Entry)] = []
        /// Waits that end when all of this is durable.
        var settling: [Int]

        var isEmpty: Bool { self.records.isEmpty && self.strict.isEmpty && self.settling.isEmpty }
    }

    /// Writes what has gathered; `false` when neither the store nor the spool took it, and then it is kept.
    func flush(_ writer: inout WriterState) async -> Bool {
        if !writer.isDirect { await self.catchUp(&writer) }
        return writer.isDirect ? await self.storeGathered(&writer) : await self.spoolGathered(&writer)
    }

    // MARK: To the store

    private func storeGathered(_ writer: inout WriterState) async -> Bool {
        var batch = self.takeGathered(withStrict: true)
        self.queuedRecords.set(batch.records.count + batch.strict.count)
        if batch.records.isEmpty, batch.strict.isEmpty, !self.state.withLock({ $0.isFailing }) {
            self.noteTaken()
            self.finish(batch)
            return true
        }
        var movesLeft = Self.maxMoves
        while true {
            switch await self.store(batch, &writer) {
            case .taken: return true
            case .refused: return false
            case .conflict(let delivery):
                guard movesLeft > 0, let stored = await self.move(&writer, before: batch.records) else {
                    return await self.keep(batch, refusedBy: delivery, &writer)
                }
                movesLeft -= 1
                self.drop(stored, of: &batch)
            }
        }
    }

    /// The result of giving a batch to the store.
    private enum Storing {
        /// The store has it, or the spool.
        case taken
        /// Neither has; it waits.
        case refused
        /// Another record is in the place of one; nothing was done.
        case conflict(AuditStoreWorker.Delivery)
    }

    private func store(_ batch: Batch, _ writer: inout WriterState) async -> Storing {
        var longer = writer.tail
        var chained: [ChainedAuditRecord] = []
        chained.reserveCapacity(batch.records.count + batch.strict.count)
        for entry in batch.records { chained.append(longer.append(entry)) }
        // Behind the others: they alone are not repeated when the store refuses.
        for item in batch.strict { chained.append(longer.append(item.entry)) }
        let (records, end) = (chained, longer)
        self.worker.start { await self.deliver(records, through: end) }
        var delivery = await self.delivery(of: batch, writer)
        if delivery == nil {
            // The time of commits is up as well by then: their records go with the others, in the places that they have
            // where the store takes them after all.
            if await self.spool(batch, with: batch.strict.map(\.entry), &writer) { return .taken }
            delivery = await self.worker.outcome(within: nil)
        }
        guard let delivery, case .stored(let stored) = delivery.result else {
            if let delivery, delivery.hasMetConflict { return .conflict(delivery) }
            return await self.keep(batch, refusedBy: delivery, &writer) ? .taken : .refused
        }
        writer.storeTook(stored)
        self.note(stored: delivery)
        self.finish(batch)
        return .taken
    }

    /// Keeps a batch that the store did not take, in the spool or else in memory; whether the spool took it.
    ///
    /// Records that the store may have after all keep their places, commits included, so that each is there once.
    private func keep(
        _ batch: Batch,
        refusedBy delivery: AuditStoreWorker.Delivery?,
        _ writer: inout WriterState
    ) async -> Bool {
        let isUnknown = delivery?.leavesOutcomeUnknown ?? false
        for item in batch.strict { self.finishCommit(item.number, isUnknown ? .unknown : .refused) }
        if let delivery { self.note(refused: delivery) }
        let late = isUnknown ? batch.strict.map(\.entry) : []
        if await self.spool(batch, with: late, &writer) { return true }
        self.putBack(batch, with: late)
        return false
    }

    /// Leaves out so many records that the store has already.
    private func drop(_ count: Int, of batch: inout Batch) {
        let left = batch.records.prefix(count)
        let bytes = left.reduce(0) { $0 + $1.byteCount }
        batch.records.removeFirst(count)
        let writing = batch.records.count
        self.state.withLock { state in
            state.heldBytes -= bytes
            state.writing = writing
            state.leave(left)
        }
    }

    /// Returns the batch's delivery; `nil` if the store takes so long that the spool should have the records.
    private func delivery(of batch: Batch, _ writer: WriterState) async -> AuditStoreWorker.Delivery? {
        guard self.hasSpool(writer), !batch.records.isEmpty || !batch.strict.isEmpty else {
            return await self.worker.outcome(within: nil)
        }
        // A commit waits for the store, but no longer than it may take.
        return batch.strict.isEmpty
            ? await self.worker.outcome(within: self.configuration.spoolAfter)
            : await self.worker.outcome(within: self.configuration.commitTimeout, canBeCutShort: false)
    }

    private func deliver(
        _ records: [ChainedAuditRecord],
        through end: AuditChain,
        cursor: AuditSpool.Cursor? = nil
    ) async -> AuditStoreWorker.Delivery {
        let start = Uptime.now
        var delivery = AuditStoreWorker.Delivery(
            result: .stored(end),
            count: records.count,
            duration: .zero,
            cursor: cursor
        )
        do throws(GatewayError) {
            try await self.store.append(records, head: self.sealer.head(of: end, state: .open))
        } catch {
            delivery.result = .refused(error)
        }
        delivery.duration = Uptime.now - start
        return delivery
    }

    // MARK: To the spool

    private func hasSpool(_ writer: WriterState) -> Bool {
        self.spool != nil && !writer.isSpoolStuck
    }

    private func spoolGathered(_ writer: inout WriterState) async -> Bool {
        let batch = self.takeGathered(withStrict: false)
        if batch.isEmpty { return true }
        if await self.spool(batch, &writer) { return true }
        self.putBack(batch)
        return false
    }

    /// Spools a batch's records but those of commits, whose callers hear that they were refused; whether it could. Late
    /// records are those of commits whose time is up, which the store may have all the same.
    private func spool(
        _ gathered: Batch,
        with late: [AuditChain.Entry] = [],
        _ writer: inout WriterState
    ) async -> Bool {
        var batch = gathered
        batch.strict = []
        guard let spool = self.spool, self.hasSpool(writer) else { return false }
        do throws(GatewayError) {
            let end = try await spool.append(batch.records + late, after: writer.tail, to: &writer.end)
            if writer.isDirect {
                self.logger.warning("The audit's store does not take its records; they go to the spool")
            }
            writer.spoolTook(end)
        } catch {
            self.logger.error("The audit's spool can't be written", metadata: ["cause": "\(error.message)"])
            return false
        }
        self.spooledRecords.increment(by: batch.records.count + late.count)
        self.spoolBytes.set(writer.end.offset - writer.cursor.offset)
        if !self.isStrict { self.noteTaken() }
        self.state.withLock { state in
            for entry in batch.records { state.shares[entry.tenantUID]?.spooledBytes += entry.byteCount }
        }
        self.finish(batch)
        return true
    }

    // MARK: From the spool to the store

    private func catchUp(_ writer: inout WriterState) async {
        while true {
            // Close to the end, it is worth waiting for a store that works: what gathers meanwhile needs no detour.
            let isNear = writer.isStoreWell && writer.lag <= Self.replayedRecords
            let delivery =
                isNear ? await self.worker.outcome(within: self.configuration.spoolAfter) : self.worker.takeOutcome()
            if let delivery {
                await self.take(delivery, &writer)
            } else if self.worker.isBusy {
                return
            }
            if writer.isDirect { return }
            if writer.returnIfCaughtUp() { return await self.leaveSpool(&writer) }
            self.beginReplay(&writer)
            if !isNear { return }
        }
    }

    private func take(_ delivery: AuditStoreWorker.Delivery, _ writer: inout WriterState) async {
        switch delivery.result {
        case .stored(let end):
            writer.storeTook(end)
            if let cursor = delivery.cursor { (writer.cursor, writer.skipped) = (cursor, delivery.skipped) }
            self.spoolBytes.set(max(0, writer.end.offset - writer.cursor.offset))
            self.note(stored: delivery)
        case .refused:
            if delivery.hasMetConflict, await self.move(&writer) != nil { return }
            writer.storeRefused()
            self.note(refused: delivery)
            self.failCommits(through: writer.awaited)
        case .damaged:
            await self.abandonSpool(&writer)
        }
    }

    private func beginReplay(_ writer: inout WriterState) {
        guard let spool = self.spool else { return }
        writer.awaited = self.state.withLock { $0.nextNumber }
        let (stored, cursor, skipped, size) = (writer.stored, writer.cursor, writer.skipped, writer.end.offset)
        let pause: Duration? = writer.isStoreWell ? nil : self.configuration.retryInterval
        self.worker.start {
            if let pause { try? await Task.sleep(for: pause) }
            return await self.replay(spool, from: cursor, skipping: skipped, through: size, beyond: stored)
        }
    }

    /// Hands the store the spool's next records; none, to see whether the store works, where there are no more.
    ///
    /// Those that were spooled for another chain get places in this one, but for so many that the other chain has.
    private func replay(
        _ spool: AuditSpool,
        from start: AuditSpool.Cursor,
        skipping skipped: Int,
        through size: Int,
        beyond stored: AuditChain
    ) async -> AuditStoreWorker.Delivery {
        var (cursor, toSkip) = (start, skipped)
        var end = stored
        var records: [ChainedAuditRecord] = []
        do throws(GatewayError) {
            while records.count < Self.replayedRecords, cursor.offset < size {
                guard case .batch(let batch) = try await spool.next(from: &cursor) else {
                    if records.isEmpty { return AuditStoreWorker.Delivery(result: .damaged, count: 0, duration: .zero) }
                    // The records before the damage are good; the next replay begins with the damage.
                    break
                }
                guard batch.base.writer == end.writer else {
                    let count = min(toSkip, batch.entries.count)
                    toSkip -= count
                    for entry in batch.entries.dropFirst(count) { records.append(end.append(entry)) }
                    continue
                }
                for record in batch.records where record.sequence > end.sequence {
                    records.append(record)
                    end = AuditChain(writer: record.writer, sequence: record.sequence, hash: record.hash)
                }
            }
        } catch {
            return AuditStoreWorker.Delivery(result: .refused(error), count: 0, duration: .zero)
        }
        var delivery = await self.deliver(records, through: end, cursor: cursor)
        delivery.skipped = toSkip
        return delivery
    }

    /// Empties the spool, of which the store has everything.
    private func leaveSpool(_ writer: inout WriterState) async {
        self.logger.notice("The audit's store has everything again")
        do throws(GatewayError) {
            try await self.spool?.file.cut(to: 0)
            writer.spoolEmptied()
        } catch {
            writer.isSpoolStuck = true
            self.logger.error(
                "The audit's spool can't be emptied; it is not used any more",
                metadata: ["cause": "\(error.message)"]
            )
        }
        // Nothing follows in a spool that can't be emptied, so that no share of it is needed either.
        self.state.withLock { $0.forgetSpooled() }
        self.spoolBytes.set(0)
    }

    /// Continues without the content of a spool that was changed.
    private func abandonSpool(_ writer: inout WriterState) async {
        let reason = "\(writer.lag) records lost"
        var chain = writer.stored
        let record = chain.append(self.damageRecord(reason))
        do throws(GatewayError) {
            // The record comes first, so that no crash hides the damage.
            try await self.store.append([record], head: self.sealer.head(of: chain, state: .open))
        } catch {
            // The next replay comes by the damage again.
            if error.code == .conflict { _ = await self.move(&writer) }
            return writer.storeRefused()
        }
        let lost = writer.abandonSpool()
        writer.storeTook(chain)
        self.refusedRecords.increment(by: lost)
        writer.spoolEmptied()
        self.state.withLock { $0.forgetSpooled() }
        do throws(GatewayError) {
            let path = try await self.spool?.file.setAside(self.asideSuffix)
            self.noteDamage(reason, kept: path, lost: lost)
        } catch {
            writer.isSpoolStuck = true
            self.noteDamage(reason, kept: nil, lost: lost)
        }
        self.spoolBytes.set(0)
    }

    // MARK: The queue

    private func takeGathered(withStrict: Bool) -> Batch {
        self.state.withLock { state in
            var batch = Batch(records: state.records, settling: state.settling)
            (state.records, state.settling) = ([], [])
            // As many are likely to follow: an array that grows step by step costs those who send.
            state.records.reserveCapacity(min(batch.records.count, 1_000))
            if withStrict { (batch.strict, state.strict) = (state.strict, []) }
            state.writing = batch.records.count
            return batch
        }
    }

    private func putBack(_ batch: Batch, with late: [AuditChain.Entry] = []) {
        let bytes = late.reduce(0) { $0 + $1.byteCount }
        self.state.withLock { state in
            state.isFailing = true
            state.beginWaiting()
            state.writing = 0
            state.heldBytes += bytes
            for entry in late { state.shares[entry.tenantUID, default: AuditShare()].enter(entry) }
            state.records = batch.records + late + state.records
            // A wait whose time is up meanwhile has no continuation any more.
            state.settling = batch.settling.filter { state.commits[$0] != nil } + state.settling
        }
    }

    private func finish(_ batch: Batch) {
        let bytes = batch.records.reduce(0) { $0 + $1.byteCount }
        self.state.withLock { state in
            state.isFailing = false
            state.writing = 0
            state.heldBytes -= bytes
            state.leave(batch.records[...])
        }
        self.queuedRecords.set(0)
        // Commits that were refused have been told so already.
        for item in batch.strict { self.finishCommit(item.number, .durable) }
        for number in batch.settling { self.finishCommit(number, .durable) }
    }

    private func finishCommit(_ number: Int, _ end: CommitEnd) {
        let continuation = self.state.withLock { $0.takeCommit(number) }
        continuation?.resume(returning: end)
    }

    private func failCommits(through number: Int) {
        let refused = self.state.withLock { state in state.strict.filter { $0.number <= number }.map(\.number) }
        for number in refused { self.finishCommit(number, .refused) }
    }

    private func note(stored delivery: AuditStoreWorker.Delivery) {
        self.noteTaken()
        self.outage.succeeded()
        self.writtenRecords.increment(by: delivery.count)
        self.writeDuration.recordNanoseconds(delivery.duration.nanoseconds)
    }

    private func note(refused delivery: AuditStoreWorker.Delivery) {
        guard case .refused(let error) = delivery.result else { return }
        self.refusedRecords.increment(by: delivery.count)
        self.outage.failed(error)
    }

    /// The chain's ends in the store and in the spool, and so the place of the next records. Only the writer's task has
    /// it.
    struct WriterState: Sendable {
        private enum Phase: Sendable, Hashable {
            /// The store has everything and gets the next records. Next: `spooling`.
            case direct
            /// The store lacks what the spool holds, or has taken nothing since it refused. Next: `direct`.
            case spooling(isStoreWell: Bool)
        }

        private var phase = Phase.direct
        /// The chain's end: what is before it is durable.
        private(set) var tail: AuditChain
        /// The chain's end as far as the store is known to have it.
        private(set) var stored: AuditChain
        var end = AuditSpool.Cursor()
        /// The place in the spool up to which the store was given its content.
        var cursor = AuditSpool.Cursor()
        /// The number of records behind the cursor that were spooled for earlier chains and are stored in those.
        var skipped = 0
        /// True if the spool could not be emptied, so that nothing can follow in it.
        var isSpoolStuck = false
        /// Commits up to this number wait for the delivery under way.
        var awaited = 0

        init(chain: AuditChain) {
            (self.tail, self.stored) = (chain, chain)
        }

        var isDirect: Bool { self.phase == .direct }

        /// True if the store took the last batch.
        var isStoreWell: Bool { self.phase == .direct || self.phase == .spooling(isStoreWell: true) }

        /// The number of records that the spool has and the store lacks.
        var lag: Int { max(0, self.tail.sequence - self.stored.sequence) }

        mutating func storeTook(_ end: AuditChain) {
            self.stored = end
            switch self.phase {
            case .direct: self.tail = end
            case .spooling: self.phase = .spooling(isStoreWell: true)
            }
        }

        /// Continues on another chain, given its end in the store and its end in the spool.
        mutating func move(to stored: AuditChain, _ tail: AuditChain, skipping count: Int) {
            (self.stored, self.tail, self.skipped) = (stored, tail, count)
            if !self.isDirect { self.phase = .spooling(isStoreWell: true) }
        }

        mutating func storeRefused() {
            if case .spooling = self.phase { self.phase = .spooling(isStoreWell: false) }
        }

        mutating func spoolTook(_ end: AuditChain) {
            self.tail = end
            if self.phase == .direct { self.phase = .spooling(isStoreWell: false) }
        }

        /// Goes back to the store if it has everything; whether it has, so that the spool can be emptied.
        mutating func returnIfCaughtUp() -> Bool {
            guard self.phase == .spooling(isStoreWell: true), self.lag == 0 else { return false }
            self.phase = .direct
            return true
        }

        /// Goes back to the store without what the spool held; how many records are lost.
        mutating func abandonSpool() -> Int {
            defer { (self.tail, self.phase) = (self.stored, .direct) }
            return self.lag
        }

        mutating func spoolEmptied() {
            (self.end, self.cursor, self.skipped) = (AuditSpool.Cursor(), AuditSpool.Cursor(), 0)
        }
    }
}
