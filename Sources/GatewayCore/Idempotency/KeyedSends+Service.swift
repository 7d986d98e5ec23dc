import Logging
import Metrics
import ServiceLifecycle
import Synchronization

extension KeyedSends: Service {
    /// Makes sends until shutdown, and then those that were taken.
    ///
    /// Runs once. Trouble with the store is reported by metric and log.
    package func run() async throws {
        precondition(
            !self.hasRun.exchange(true, ordering: .relaxed),
            "Sends with idempotency keys are served once"
        )
        await withTaskGroup { group in
            group.addTask { await self.journal.run() }
            group.addTask { await self.purgeRegularly() }
            await withGracefulShutdownHandler {
                await self.serve()
            } onGracefulShutdown: {
                self.wakeContinuation.finish()
            }
            self.journal.close()
            group.cancelAll()
        }
    }

    private func serve() async {
        await withDiscardingTaskGroup { group in
            for await _ in self.wake {
                for job in self.take() {
                    group.addTask(executorPreference: job.executor) { await self.perform(job) }
                }
            }
            let left = self.state.withLock { state in
                defer { (state.jobs, state.isClosed) = ([], true) }
                return state.jobs
            }
            for job in left { self.turnAway(job) }
        }
    }

    private func take() -> [Job] {
        self.state.withLock { state in
            defer { state.jobs = [] }
            return state.jobs
        }
    }

    // MARK: Expiry

    private func purgeRegularly() async {
        repeat {
            await self.purge()
        } while (try? await Task.sleep(for: self.configuration.purgeInterval)) != nil
    }

    /// Drops what has expired.
    ///
    /// - Returns: how many records.
    @discardableResult
    package func purge() async -> Int {
        var total = 0
        do throws(GatewayError) {
            while !Task.isCancelled {
                let count = try await self.store.purge(
                    at: IdempotencyMark(time: try await self.time(), wall: self.clock.now()),
                    limit: self.configuration.purgeBatch
                )
                total += count
                guard count == self.configuration.purgeBatch else { return total }
            }
            return total
        } catch {
            self.counters[.failed]?.increment()
            self.logger.error("Expired idempotency keys can't be dropped", metadata: ["cause": "\(error.message)"])
            return total
        }
    }
}
