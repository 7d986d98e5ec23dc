package import Logging
import Metrics
import Synchronization

/// The tokens that FCM reported dead or replaced: asked before each send from memory, told of each answer, and written
/// to the store by one writer.
///
/// What is reported is known in memory at once and durable within the flush interval; a killed process forgets what
/// waited, and hears of it again with the next send to the token.
package final class RetiredTokens: Sendable {
    let store: any RetiredTokenStore
    let clock: any WallClock
    let configuration: RetiredTokenConfiguration
    /// Recipients that were refused without asking FCM.
    let refusals: Counter
    let writtenChanges: Counter
    /// Changes that the store refused, once for each attempt.
    let refusedChanges: Counter
    /// Reports that found no place in the queue, and changes that were lost with the process's end.
    let droppedChanges: Counter
    private let tokenCounts: [RetiredTokenState: Meter]
    /// Tenants whose reports are held back.
    let heldBack: TenantGauges
    let logger: Logger
    let profiles: @Sendable () -> [TenantProfile]
    let queue: RetiredTokenQueue
    /// The tenants' books, by a key that a tenant made anew does not share with its predecessor.
    let ledgers = Mutex<[LimitKey: RetiredTokenLedger]>([:])
    let hasRun = Atomic(false)
    let isOverflowing = Atomic(false)

    /// A list that knows nothing yet; call ``load()`` before serving.
    package init(
        store: any RetiredTokenStore,
        clock: any WallClock,
        configuration: RetiredTokenConfiguration = RetiredTokenConfiguration(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger,
        profiles: @escaping @Sendable () -> [TenantProfile]
    ) {
        self.store = store
        self.clock = clock
        self.configuration = configuration
        self.refusals = metrics.counter(.retiredTokenRefusals)
        self.writtenChanges = metrics.counter(.retiredTokenChanges, "written")
        self.refusedChanges = metrics.counter(.retiredTokenChanges, "refused")
        self.droppedChanges = metrics.counter(.retiredTokenChanges, "dropped")
        self.tokenCounts = metrics.gauges(.retiredTokens, by: RetiredTokenState.self)
        self.heldBack = TenantGauges(.purgeGuardActive, metrics) { $0.reduce(0, +) }
        self.logger = logger
        self.profiles = profiles
        self.queue = RetiredTokenQueue(capacity: configuration.queueCapacity, maxBytes: configuration.queueBytes)
    }

    /// Reads the list into memory.
    ///
    /// - Throws: `storeUnavailable`.
    package func load() async throws(GatewayError) {
        let contents = try await self.store.load()
        let entries = Dictionary(grouping: contents.entries, by: \.tenant)
        let now = self.clock.now()
        for profile in self.profiles() {
            let (own, purgeGuard) = (entries[profile.id] ?? [], contents.guards[profile.id])
            guard !own.isEmpty || purgeGuard != nil else { continue }
            let ledger = RetiredTokenLedger(
                of: profile,
                purgeGuard: purgeGuard ?? PurgeGuard(at: now),
                queue: self.queue
            )
            ledger.restore(own)
            self.ledgers.withLock { $0[profile.limitKey] = ledger }
            if ledger.isJumping { self.heldBack.set(1, of: profile.id) }
        }
        self.countTokens()
    }

    // MARK: Books

    /// A tenant's book.
    func ledger(of profile: TenantProfile) -> RetiredTokenLedger {
        if let ledger = profile.retiredTokens.withLock({ $0 }) { return ledger }
        let ledger = self.ledgers.withLock { ledgers in
            if let ledger = ledgers[profile.limitKey] { return ledger }
            let ledger = RetiredTokenLedger(
                of: profile,
                purgeGuard: PurgeGuard(at: self.clock.now()),
                queue: self.queue
            )
            ledgers[profile.limitKey] = ledger
            return ledger
        }
        profile.retiredTokens.withLock { $0 = ledger }
        return ledger
    }

    /// Tells operators that a jump began or ended.
    func note(_ transition: PurgeGuard.Transition, in ledger: RetiredTokenLedger) {
        let tenant = ledger.owner.tenant
        switch transition {
        case .none:
            return
        case .began:
            self.heldBack.set(1, of: tenant)
            self.logger.warning(
                "Far more tokens are called unregistered than before; reports are held back as suspected",
                metadata: ["tenant": "\(tenant.text)"]
            )
        case .ended:
            self.heldBack.set(0, of: tenant)
            self.logger.notice(
                "No more tokens are called unregistered than before; reports are believed again",
                metadata: ["tenant": "\(tenant.text)"]
            )
        }
    }

    /// Measures how many tokens there are in each state.
    func countTokens() {
        var total: [RetiredTokenState: Int] = [:]
        for ledger in self.ledgers.withLock({ Array($0.values) }) {
            total.merge(ledger.counts, uniquingKeysWith: +)
        }
        for (state, gauge) in self.tokenCounts { gauge.set(total[state] ?? 0) }
    }
}
