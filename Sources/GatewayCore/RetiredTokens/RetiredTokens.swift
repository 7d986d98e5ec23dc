package import FCMModel
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// The tokens that FCM reported dead or replaced (decision 0016).
///
/// A send compares its recipients with the list before the call, and reports FCM's answer after it, both in memory. A
/// writer stores the reports within the flush interval. A killed process loses the waiting ones, and learns them again
/// with the next send to the token.
///
/// Every few seconds a replica reads what changed in the store, so that all refuse the same tokens. The store decides
/// which tokens are fed, for all replicas (``RetiredTokenCounts``).
package final class RetiredTokens: Service {
    /// The result of comparing a send's recipients with the list of retired tokens.
    package enum Screening: Sendable, Hashable {
        case clear
        /// Some recipients are on the list, and none is refused.
        case listed
        /// The recipients whose entry is `true` are refused, in the request's order.
        case refused([Bool])
    }

    /// Bounds and times of the list of retired tokens.
    package struct Configuration: Sendable {
        /// The most changes that may wait to be written. Reports beyond it are dropped and counted.
        package var queueCapacity = 50_000
        /// The most bytes of tokens that may wait to be written. Reports beyond it are dropped as well.
        package var queueBytes = 32 << 20
        /// The time for which a change waits for others to share its transaction.
        package var flushInterval = Duration.milliseconds(100)
        /// The pause before a refused write is retried.
        package var retryInterval = Duration.seconds(1)
        /// The time between two settlings: counting judged recipients, feeding due tokens, reading news.
        package var settleInterval = Duration.seconds(5)
        /// The time between two removals of old and excess tokens.
        package var trimInterval = Duration.seconds(3_600)
        /// The time after which a token leaves the list unless it is reported again.
        package var retention = Duration.seconds(90 * 86_400)
        /// The most tokens of all tenants together.
        package var maxEntries = 2_000_000

        package init() {}
    }

    typealias Writer = GroupCommitWriter<RetiredToken.Change, Void>

    private let store: any RetiredTokenStore
    private let writer: Writer
    private let clock: any WallClock
    private let configuration: Configuration
    private let refusals: Counter
    /// Counts reports that found no room in the queue, and changes lost at the process's end.
    private let droppedChanges: Counter
    private let tokenCounts: [RetiredToken.State: Meter]
    /// 1 for tenants whose last hour is a spike.
    let spikes: TenantGauges
    private let logger: Logger
    private let profiles: @Sendable () -> [TenantProfile]
    /// The tenants' lists. A tenant that is deleted and made again has another key.
    private let lists = Mutex<[LimitKey: RetiredTokenList]>([:])
    /// The time of the last reading of news, by the database's clock.
    private let newsReadAt = Mutex(Timestamp(microseconds: 0))
    private let hasRun = Atomic(false)
    /// True if dropped reports were logged since the last settling.
    private let isOverflowing = Atomic(false)
    private let settleOutage: OutageLog

    /// Makes an empty list. Call ``load()`` before serving.
    package init(
        store: any RetiredTokenStore,
        clock: any WallClock,
        configuration: Configuration = Configuration(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger,
        profiles: @escaping @Sendable () -> [TenantProfile]
    ) {
        self.store = store
        self.clock = clock
        self.configuration = configuration
        self.refusals = metrics.counter(.retiredTokenRefusals)
        self.droppedChanges = metrics.counter(.retiredTokenChanges, "dropped")
        self.tokenCounts = metrics.gauges(.retiredTokens, by: RetiredToken.State.self)
        self.spikes = TenantGauges(.retiredTokenSpikeActive, metrics) { $0.reduce(0, +) }
        self.logger = logger
        self.settleOutage = OutageLog(
            "Retired tokens can't be fed, and spikes can't be detected",
            end: "Retired tokens are fed again",
            logger
        )
        self.profiles = profiles
        let written = metrics.counter(.retiredTokenChanges, "written")
        // Counts each attempt.
        let refused = metrics.counter(.retiredTokenChanges, "refused")
        let outage = OutageLog(
            "The list of retired tokens can't be written",
            end: "The list of retired tokens is written again",
            logger
        )
        self.writer = Writer(
            maxChanges: configuration.queueCapacity,
            maxBytes: configuration.queueBytes,
            changesPerTransaction: 1_000,
            flushInterval: configuration.flushInterval,
            retryInterval: configuration.retryInterval,
            byteCount: { $0.byteCount },
            transaction: { (changes: [RetiredToken.Change]) async throws(GatewayError) -> [Void] in
                let bucketAgo = clock.now().advanced(by: .zero - RetiredTokenCounts.bucketDuration)
                do throws(GatewayError) {
                    try await store.apply(changes.map { $0.suspected(ifReportedBefore: bucketAgo) })
                } catch {
                    refused.increment(by: changes.count)
                    outage.failed(error)
                    throw error
                }
                outage.succeeded()
                written.increment(by: changes.count)
                return changes.map { _ in }
            }
        )
    }

    /// Reads the list into memory, before serving.
    package func load() async throws(GatewayError) {
        let (entries, readAt) = try await self.store.load()
        self.newsReadAt.withLock { $0 = readAt }
        self.restore(entries)
        self.countTokens()
    }

    private func restore(_ entries: [RetiredToken.Entry]) {
        guard !entries.isEmpty else { return }
        let entries = Dictionary(grouping: entries, by: \.tenant)
        for profile in self.profiles() {
            if let own = entries[profile.id] { self.list(of: profile).restore(own) }
        }
    }

    private func list(of profile: TenantProfile) -> RetiredTokenList {
        if let list = profile.retiredTokens.withLock({ $0 }) { return list }
        let list = self.lists.withLock { lists in
            if let list = lists[profile.limitKey] { return list }
            let list = RetiredTokenList(of: RetiredToken.Owner(profile), writer: self.writer)
            lists[profile.limitKey] = list
            return list
        }
        profile.retiredTokens.withLock { $0 = list }
        return list
    }

    // MARK: Sends

    package func screen(
        _ target: Target,
        _ pseudonyms: [Pseudonym],
        of profile: TenantProfile,
        at now: Timestamp
    ) -> Screening {
        let list = self.list(of: profile)
        guard !list.isEmpty, RetiredToken.Kind.of(target) != nil else { return .clear }
        return list.screen(pseudonyms, at: now)
    }

    /// The state of a token on a tenant's list, and the time of FCM's last report; `nil` if it is not on the list.
    package func report(
        on pseudonym: Pseudonym,
        of profile: TenantProfile
    ) -> (state: RetiredToken.State, at: Timestamp)? {
        self.list(of: profile).report(on: pseudonym.high)
    }

    func countRefused(_ count: Int) {
        self.refusals.increment(by: count)
    }

    /// Learns from FCM's answer.
    ///
    /// The pseudonyms are those of the target's recipients, in their order. `isListed` is true if some of them were on
    /// the list before the call.
    func learn(
        _ result: SendResult,
        to target: Target,
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        // Nearly every send ends here, without a lock or an allocation.
        if !isListed, target.isLoneDevice, result.answer.isPlainAcceptance {
            self.list(of: profile).accept(1)
        } else {
            self.learnEach(result, target, pseudonyms, isListed: isListed, of: profile, at: now)
        }
    }

    @inline(never)  // Keeps the frame small.
    private func learnEach(
        _ result: SendResult,
        _ target: Target,
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        let texts: [String]
        switch target {
        case .token(let text), .installation(let text): texts = [text]
        case .tokens(let list), .installations(let list): texts = list
        case .topic, .condition, .notificationKey, .deviceGroup: return
        }
        let outcomes: [RecipientOutcome]
        switch result.answer {
        case .recipients(let each): outcomes = each
        case .refused(let refusal) where refusal.code == .unregistered && target.isLoneDevice:
            outcomes = [.rejected(.unregistered)]
        // Neither a call that failed as a whole nor a group's count judges single recipients.
        case .refused, .group: return
        }
        guard let kind = RetiredToken.Kind.of(target), outcomes.count == texts.count, pseudonyms.count == texts.count
        else { return }
        var accepted = 0
        var reports: [RetiredTokenList.Table.Report] = []
        for index in outcomes.indices {
            let evidence: RetiredTokenList.Table.Report.Evidence
            switch outcomes[index] {
            case .accepted(let acceptance):
                if let replacement = acceptance.replacementToken {
                    let bits = UInt16(truncatingIfNeeded: profile.pseudonymizer.pseudonym(of: replacement).low)
                    evidence = .replaced(by: replacement, bits)
                } else if isListed {
                    evidence = .alive
                } else {
                    accepted += 1
                    continue
                }
            case .rejected(let rejection):
                guard rejection.code == .unregistered else { continue }
                evidence = .dead
            }
            let key = pseudonyms[index].high
            reports.append(RetiredTokenList.Table.Report(key: key, kind: kind, text: texts[index], evidence: evidence))
        }
        let list = self.list(of: profile)
        list.accept(accepted)
        guard !reports.isEmpty else { return }
        guard self.writer.hasRoom else {
            // A fault must show as a spike even if its reports are dropped.
            list.countDead(reports.count { $0.evidence == .dead })
            return self.leaveOut(reports.count)
        }
        list.learn(reports, at: now)
    }

    /// Drops reports. The next sends to their tokens report them again.
    private func leaveOut(_ count: Int) {
        self.droppedChanges.increment(by: count)
        guard !self.isOverflowing.exchange(true, ordering: .relaxed) else { return }
        self.logger.error("Reports of retired tokens are dropped, because too many wait to be written")
    }

    // MARK: The tenant's view

    /// Returns a tenant's feed after a cursor, or from its beginning. Throws `invalid` for a cursor of another epoch.
    package func feed(
        of profile: TenantProfile,
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let feed = try await self.store.feed(of: RetiredToken.Owner(profile), after: cursor, limit: limit)
        if feed.unreadable > 0 {
            self.logger.error(
                "Stored retired tokens do not open and are left out of the feed",
                metadata: ["tenant": "\(profile.id.text)", "tokens": .stringConvertible(feed.unreadable)]
            )
        }
        return feed
    }

    /// Takes a token off a tenant's list. Returns false if it was not on it.
    ///
    /// This replica asks FCM with the next send, the others after their next settling.
    func delete(_ pseudonym: Pseudonym, of profile: TenantProfile) async throws(GatewayError) -> Bool {
        // A report that waits would list it again.
        guard await self.writer.flush() else {
            throw GatewayError(.storeUnavailable, "The list of retired tokens can't be written")
        }
        let wasListed = try await self.store.remove(pseudonym.high, of: RetiredToken.Owner(profile))
        self.list(of: profile).forget(pseudonym.high)
        return wasListed
    }

    // MARK: Background work

    /// Writes until shutdown, then once more.
    ///
    /// Runs once. Refused writes are retried, and reported by metric and log.
    package func run() async throws {
        precondition(!self.hasRun.exchange(true, ordering: .relaxed), "The list of retired tokens runs once")
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.settleRegularly() }
            group.addTask { await self.trimRegularly() }
            group.addTask {
                try? await gracefulShutdown()
                for list in self.allLists { list.count() }
                self.writer.close()
            }
            let lost = await self.writer.run()
            group.cancelAll()
            guard lost > 0 else { return }
            self.droppedChanges.increment(by: lost)
            let metadata: Logger.Metadata = ["changes": .stringConvertible(lost)]
            self.logger.error("The list of retired tokens ended with unwritten changes", metadata: metadata)
        }
    }

    private func settleRegularly() async {
        repeat {
            await self.settle()
        } while (try? await Task.sleep(for: self.configuration.settleInterval)) != nil
    }

    private func trimRegularly() async {
        repeat {
            await self.trim()
        } while (try? await Task.sleep(for: self.configuration.trimInterval)) != nil
    }

    /// Lets the store feed due tokens, reads which tenants have a spike and which tokens changed, and queues the counts of
    /// judged recipients.
    package func settle() async {
        // While changes can't be written, what is read would undo them in memory, and nothing would bound the counts.
        let isWritten = await self.writer.flush()
        do throws(GatewayError) {
            let news = try await self.store.settle(newsSince: self.newsReadAt.withLock { $0 })
            if isWritten {
                self.newsReadAt.withLock { $0 = news.readAt }
                self.restore(news.changed)
            }
            for list in self.allLists {
                let tenant = list.owner.tenant
                let isSpiking = news.spiking.contains(tenant)
                if list.setSpiking(isSpiking) { self.report(isSpiking, of: tenant) }
                if isWritten { list.count() }
            }
            self.settleOutage.succeeded()
        } catch {
            // A call that ends with the shutdown is no outage.
            if !Task.isCancelled { self.settleOutage.failed(error) }
        }
        self.isOverflowing.store(false, ordering: .relaxed)
        self.countTokens()
    }

    /// Reports the beginning or the end of a spike.
    private func report(_ isSpiking: Bool, of tenant: TenantID) {
        self.spikes.set(isSpiking ? 1 : 0, of: tenant)
        let metadata: Logger.Metadata = ["tenant": "\(tenant.text)"]
        if isSpiking {
            self.logger.warning(
                "Spike of unregistered tokens: pending and new reports are suspected",
                metadata: metadata
            )
        } else {
            self.logger.notice(
                "The spike of unregistered tokens has ended: new reports are fed after an hour",
                metadata: metadata
            )
        }
    }

    /// Writes the waiting changes. Returns `false` if the store refused, and keeps them.
    @discardableResult
    package func flush() async -> Bool {
        await self.writer.flush()
    }

    /// Drops old and excess tokens in the store, and the lists of deleted tenants. The next settling reads the removed
    /// tokens.
    package func trim() async {
        self.dropListsOfGoneTenants()
        let cutoff = self.clock.now().advanced(by: .zero - self.configuration.retention)
        do throws(GatewayError) {
            try await self.store.trim(reportedBefore: cutoff, keeping: self.configuration.maxEntries)
        } catch {
            self.logger.error(
                "Old entries of the list of retired tokens can't be dropped",
                metadata: ["cause": "\(error.message)"]
            )
        }
    }

    private func dropListsOfGoneTenants() {
        // Read before the tenants, so that the list of a new tenant is no candidate.
        let candidates = self.lists.withLock { Array($0.keys) }
        let living = Set(self.profiles().map(\.limitKey))
        let gone = self.lists.withLock { lists in
            candidates.filter { !living.contains($0) }.compactMap { lists.removeValue(forKey: $0) }
        }
        for tenant in Set(gone.filter(\.isSpiking).map(\.owner.tenant)) {
            // A new tenant of the same name may have a spike.
            let isSpiking = self.allLists.contains { $0.owner.tenant == tenant && $0.isSpiking }
            if !isSpiking { self.spikes.set(0, of: tenant) }
        }
    }

    private var allLists: [RetiredTokenList] { self.lists.withLock { Array($0.values) } }

    private func countTokens() {
        var total: [RetiredToken.State: Int] = [:]
        for list in self.allLists { total.merge(list.counts, uniquingKeysWith: +) }
        for (state, gauge) in self.tokenCounts { gauge.set(total[state] ?? 0) }
    }
}

extension RetiredToken.Kind {
    /// Returns the kind of a target's recipients, or `nil` if they can't retire.
    ///
    /// It is no initialiser, because that would retain the target.
    fileprivate static func of(_ target: Target) -> RetiredToken.Kind? {
        switch target {
        case .token, .tokens: .token
        case .installation, .installations: .installation
        case .topic, .condition, .notificationKey, .deviceGroup: nil
        }
    }
}

extension Target {
    fileprivate var isLoneDevice: Bool {
        switch self {
        case .token, .installation: true
        case .tokens, .installations, .topic, .condition, .notificationKey, .deviceGroup: false
        }
    }
}

extension SendResult.Answer {
    /// True if one recipient was accepted, without a replacement token.
    fileprivate var isPlainAcceptance: Bool {
        guard case .recipients(let outcomes) = self, outcomes.count == 1, case .accepted(let acceptance) = outcomes[0]
        else { return false }
        return acceptance.replacementToken == nil
    }
}
