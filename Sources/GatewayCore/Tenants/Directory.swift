import ServiceLifecycle
import Synchronization

/// The directory in memory: the current snapshot, swapped whole.
///
/// Look-ups never touch the store. A request reads ``snapshot`` once and keeps it, so that it sees one picture.
package final class Directory: Service {
    /// What a snapshot is made of.
    private struct Source {
        var contents = DirectoryContents()
        var defaultLimits: LimitPolicies
        /// Reads of the store that have begun.
        var reads = 0
        /// The read that the contents come from.
        var newestRead = 0
        /// Grows with every change, so that a snapshot of older parts is not shown.
        var version = 0
    }

    /// The pause before a failed reading is repeated.
    private static let retryInterval = Duration.seconds(1)

    private let store: any DirectoryStore
    private let masterKey: MasterKey
    private let auditKey: Secret
    private let keptPolicies: [LimitKey: PolicyHistory]
    private let clock: any WallClock
    private let source: Mutex<Source>
    private let current = Mutex(DirectorySnapshot())
    private let observer = Mutex<(@Sendable (DirectorySnapshot) -> Void)?>(nil)
    /// Asks for a reading that is repeated until it works.
    private let retries: AsyncStream<Void>
    private let retryContinuation: AsyncStream<Void>.Continuation

    /// A directory that starts empty; call ``reload()`` before serving.
    ///
    /// - Parameters:
    ///   - store: where tenants and keys are.
    ///   - masterKey: opens their credentials.
    ///   - auditKey: makes their pseudonyms.
    ///   - defaultLimits: the limits of tenants without their own.
    ///   - keptPolicies: the limits that were in force when quotas were kept, by tenants' keys.
    ///   - clock: tells when limits change.
    package init(
        store: any DirectoryStore,
        masterKey: MasterKey,
        auditKey: Secret,
        defaultLimits: LimitPolicies,
        keptPolicies: [LimitKey: PolicyHistory] = [:],
        clock: any WallClock
    ) {
        self.store = store
        self.masterKey = masterKey
        self.auditKey = auditKey
        self.keptPolicies = keptPolicies
        self.clock = clock
        self.source = Mutex(Source(defaultLimits: defaultLimits))
        (self.retries, self.retryContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The current picture.
    package var snapshot: DirectorySnapshot {
        self.current.withLock { $0 }
    }

    /// What makes the pseudonyms of a tenant that is about to be made.
    func pseudonymizer(tenantSalt: [UInt8]) -> Pseudonymizer {
        Pseudonymizer(auditKey: self.auditKey, tenantSalt: tenantSalt)
    }

    /// Has every snapshot from now on handed to an observer too, after it has come into force; off the event loops.
    package func whenChanged(_ observer: @escaping @Sendable (DirectorySnapshot) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    /// Reads the store and swaps the picture.
    ///
    /// It goes on when its caller's task is cancelled: what was changed must come into force whoever still waits for it.
    ///
    /// - Throws: `storeUnavailable`; the old picture stays.
    package func reload() async throws(GatewayError) {
        let failure = await Task { () -> GatewayError? in
            do throws(GatewayError) {
                try await self.read()
                return nil
            } catch {
                return error
            }
        }
        .value
        if let failure { throw failure }
    }

    /// Has the store read again and again until that works: what was changed comes into force late rather than never.
    func reloadEventually() {
        self.retryContinuation.yield()
    }

    /// Repeats readings that failed, until shutdown.
    package func run() async throws {
        for await _ in self.retries.cancelOnGracefulShutdown() {
            var isDone = false
            while !isDone, await Self.pause() { isDone = (try? await self.reload()) != nil }
        }
    }

    /// Waits for the next attempt.
    ///
    /// - Returns: whether there shall be one.
    private static func pause() async -> Bool {
        (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.retryInterval) }) != nil
            && !Task.isShuttingDownGracefully
    }

    private func read() async throws(GatewayError) {
        let read = self.source.withLock { source in
            source.reads += 1
            return source.reads
        }
        let contents = try await self.store.load()
        self.source.withLock { source in
            // A read that began later has seen more.
            guard read > source.newestRead else { return }
            source.newestRead = read
            source.contents = contents
            source.version += 1
        }
        self.show()
    }

    /// Puts other limits in force for the tenants that have none of their own.
    package func use(defaultLimits: LimitPolicies) {
        self.source.withLock { source in
            source.defaultLimits = defaultLimits
            source.version += 1
        }
        self.show()
    }

    /// Makes a snapshot of the newest parts and swaps it in; anew where they have changed meanwhile.
    private func show() {
        var isShown = false
        while !isShown {
            let source = self.source.withLock { $0 }
            let snapshot = DirectorySnapshot(
                contents: source.contents,
                after: self.snapshot,
                kept: self.keptPolicies,
                at: self.clock.now(),
                masterKey: self.masterKey,
                auditKey: self.auditKey,
                defaultLimits: source.defaultLimits
            )
            isShown = self.source.withLock { newest in
                guard newest.version == source.version else { return false }
                self.current.withLock { $0 = snapshot }
                return true
            }
        }
        // The newest, whichever of two changes comes here first.
        self.observer.withLock { $0?(self.snapshot) }
    }
}
