import Logging
import Metrics
import ServiceLifecycle
import Synchronization

extension RetiredTokens: Service {
    /// The most changes of one transaction, so that the audit's writer never waits long for its turn.
    private static let changesPerTransaction = 1_000

    /// Writes until shutdown, then once more.
    ///
    /// Runs once. Trouble with the store is repeated, and reported by metric and log.
    package func run() async throws {
        precondition(!self.hasRun.exchange(true, ordering: .relaxed), "The list of retired tokens runs once")
        await withTaskGroup { group in
            group.addTask { await self.settleRegularly() }
            group.addTask { await self.trimRegularly() }
            await withGracefulShutdownHandler {
                for await _ in self.queue.wake {
                    // Wait a moment, so that one transaction holds many changes.
                    try? await Task.sleep(for: self.configuration.flushInterval)
                    while !(await self.flush()) {
                        try? await Task.sleep(for: self.configuration.retryInterval)
                        if Task.isCancelled || Task.isShuttingDownGracefully { break }
                    }
                }
            } onGracefulShutdown: {
                self.queue.close()
            }
            group.cancelAll()
        }
        self.settle()
        guard await self.flush() else {
            let lost = self.queue.count
            self.droppedChanges.increment(by: lost)
            self.logger.error(
                "The list of retired tokens ended before all was written",
                metadata: ["changes": "\(lost)"]
            )
            return
        }
    }

    private func settleRegularly() async {
        while (try? await Task.sleep(for: self.configuration.settleInterval)) != nil {
            self.settle()
        }
    }

    private func trimRegularly() async {
        repeat {
            await self.trim()
        } while (try? await Task.sleep(for: self.configuration.trimInterval)) != nil
    }

    /// Ends the waiting of reports that no jump followed.
    package func settle() {
        let now = self.clock.now()
        for ledger in self.ledgers.withLock({ Array($0.values) }) {
            self.note(ledger.settle(at: now), in: ledger)
        }
        self.countTokens()
    }

    /// Writes what waits.
    ///
    /// - Returns: whether the store took it; what it refused is kept.
    @discardableResult
    package func flush() async -> Bool {
        while true {
            let drafts = self.queue.take(atMost: Self.changesPerTransaction)
            guard !drafts.isEmpty else {
                self.isOverflowing.store(false, ordering: .relaxed)
                return true
            }
            let changes = drafts.compactMap(\.sealed)
            if changes.count < drafts.count {
                self.droppedChanges.increment(by: drafts.count - changes.count)
                self.logger.error("A retired token can't be sealed and is left out")
            }
            do {
                try await self.store.apply(changes)
                self.writtenChanges.increment(by: changes.count)
            } catch {
                self.queue.putBack(drafts)
                self.refusedChanges.increment(by: changes.count)
                self.logger.error(
                    "The list of retired tokens can't be written",
                    metadata: ["cause": "\(error.message)"]
                )
                return false
            }
        }
    }

    /// Drops what is too old or too much, in the store and in memory, and the books of tenants that are gone.
    package func trim() async {
        let candidates = self.ledgers.withLock { Array($0.keys) }
        let living = Dictionary(self.profiles().map { ($0.limitKey, $0.id) }) { first, _ in first }
        let gone = self.ledgers.withLock { ledgers in
            candidates.filter { living[$0] == nil }.compactMap { ledgers.removeValue(forKey: $0) }
        }
        for tenant in Set(gone.filter(\.isJumping).map(\.owner.tenant)) {
            // Another tenant of the same name may have a jump of its own.
            let isHeldBack = self.ledgers.withLock { $0.values.contains { $0.owner.tenant == tenant && $0.isJumping } }
            if !isHeldBack { self.heldBack.set(0, of: tenant) }
        }
        let cutoff = self.clock.now().advanced(by: .zero - self.configuration.retention)
        let dropped: [RetiredTokenEntry]
        do {
            dropped = try await self.store.trim(reportedBefore: cutoff, keeping: self.configuration.maxEntries)
        } catch {
            self.logger.error(
                "Old entries of the list of retired tokens can't be dropped",
                metadata: ["cause": "\(error.message)"]
            )
            return
        }
        let byTenant = Dictionary(grouping: dropped, by: \.tenant)
        for ledger in self.ledgers.withLock({ Array($0.values) }) {
            if let own = byTenant[ledger.owner.tenant] { ledger.forget(own) }
        }
        self.countTokens()
    }
}
