package import FCMModel
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// How much the list of retired tokens holds, and when it is written.
package struct RetiredTokenConfiguration: Sendable {
    /// The most changes that may wait to be written; reports beyond it are left out, and counted.
    package var queueCapacity = 50_000
    /// The most bytes of tokens that may wait to be written; reports beyond it are left out too.
    package var queueBytes = 32 << 20
    /// How long a change waits for others to share its transaction.
    package var flushInterval = Duration.milliseconds(100)
    /// The pause before a refused write is tried again.
    package var retryInterval = Duration.seconds(1)
    /// How often pending reports are looked through.
    package var settleInterval = Duration.seconds(30)
    /// How often tokens are dropped that are too old or too many.
    package var trimInterval = Duration.seconds(3_600)
    /// How often other replicas' changes are asked for, where there are others: they know of each other's within two
    /// seconds, with the flush interval in between.
    package var pollInterval = Duration.milliseconds(900)
    /// How long a token stays that is not reported again.
    package var retention = Duration.seconds(90 * 86_400)
    /// The most tokens of all tenants together.
    package var maxEntries = 2_000_000

    package init() {}
}

/// How a send's recipients stand on the list of retired tokens.
package enum RetiredTokenScreening: Sendable, Hashable {
    case clear
    /// None is to be refused, but some are on the list.
    case listed
    /// Those whose entry is `true` are to be refused, in the request's order.
    case refused([Bool])
}

/// The tokens that FCM reported dead or replaced: asked before each send from memory, told of each answer, and written
/// to the store by one writer (decision 0016).
///
/// What is reported is known in memory at once and durable within the flush interval; a killed process forgets what
/// waited, and hears of it again with the next send to the token. Replicas of one store read each other's changes from it
/// (decision 0055).
package final class RetiredTokens: Service {
    typealias Writer = GroupCommitWriter<RetiredTokenChange, Void>

    private let store: any RetiredTokenStore
    private let isShared: Bool
    private let writer: Writer
    /// What has been read of other replicas' changes.
    private let follower: Mutex<RetiredTokenFollower>
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let clock: any WallClock
    private let configuration: RetiredTokenConfiguration
    private let refusals: Counter
    /// Reports that found no place in the queue, and changes that were lost with the process's end.
    private let droppedChanges: Counter
    private let tokenCounts: [RetiredToken.State: Meter]
    /// Tenants whose reports are held back.
    let heldBack: TenantGauges
    /// Where others change what the store has.
    private let age: Meter?
    private let logger: Logger
    private let profiles: @Sendable () -> [TenantProfile]
    private let lists: Lists
    private let hasRun = Atomic(false)
    /// Whether it was logged since the last settling that reports are left out.
    private let isOverflowing = Atomic(false)
    /// While the store can't be asked for other replicas' changes.
    private let pollOutage: OutageLog

    /// A list that knows nothing yet; call ``load()`` before serving. Where it is shared, other replicas change what the
    /// store has.
    package init(
        store: any RetiredTokenStore,
        isShared: Bool = false,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        clock: any WallClock,
        configuration: RetiredTokenConfiguration = RetiredTokenConfiguration(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger,
        profiles: @escaping @Sendable () -> [TenantProfile]
    ) {
        (self.store, self.clock, self.configuration) = (store, clock, configuration)
        (self.isShared, self.uptime) = (isShared, uptime)
        self.follower = Mutex(RetiredTokenFollower(at: uptime()))
        self.refusals = metrics.counter(.retiredTokenRefusals)
        self.droppedChanges = metrics.counter(.retiredTokenChanges, "dropped")
        self.tokenCounts = metrics.gauges(.retiredTokens, by: RetiredToken.State.self)
        self.age = isShared ? metrics.gauge(.cacheAge, "retired_tokens") : nil
        self.heldBack = TenantGauges(.spikeDetectorActive, metrics) { $0.reduce(0, +) }
        self.logger = logger
        self.pollOutage = OutageLog(
            "Other replicas' retired tokens can't be read; they are asked of FCM again meanwhile",
            end: "Other replicas' retired tokens are known again",
            logger
        )
        self.profiles = profiles
        let lists = Lists()
        self.lists = lists
        let written = metrics.counter(.retiredTokenChanges, "written")
        // Once for each attempt.
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
            transaction: { (changes: [RetiredTokenChange]) async throws(GatewayError) -> [Void] in
                do throws(GatewayError) {
                    try await store.apply(changes)
                } catch {
                    refused.increment(by: changes.count)
                    outage.failed(error)
                    throw error
                }
                outage.succeeded()
                written.increment(by: changes.count)
                if isShared { lists.wrote(changes) }
                return changes.map { _ in }
            }
        )
    }

    /// The tenants' lists, by a key that a tenant made anew does not share with its predecessor.
    private final class Lists: Sendable {
        private let lists = Mutex<[LimitKey: RetiredTokenList]>([:])

        func withLock<Result: Sendable>(_ body: (inout [LimitKey: RetiredTokenList]) -> Result) -> Result {
            self.lists.withLock { body(&$0) }
        }

        func wrote(_ changes: [RetiredTokenChange]) {
            let lists = self.withLock { Array($0.values) }
            let byOwner = Dictionary(grouping: changes, by: \.owner)
            for list in lists {
                if let own = byOwner[list.owner] { list.wrote(own) }
            }
        }
    }

    /// Reads the list into memory: before serving, and again where a replica could not follow the others.
    package func load() async throws(GatewayError) {
        let moment = self.uptime()
        let contents = try await self.store.load()
        let isFirst = self.follower.withLock { follower in
            defer { follower.read(contents, askedAt: moment) }
            return follower.bookmark == nil
        }
        let entries = Dictionary(grouping: contents.entries, by: \.tenant)
        for profile in self.profiles() {
            let (own, detector) = (entries[profile.id] ?? [], contents.detectors[profile.id])
            guard isFirst else {
                let list = self.list(of: profile)
                list.reload(own)
                if let detector { self.note(list.adopt(detector), in: list) }
                continue
            }
            guard !own.isEmpty || detector != nil else { continue }
            let list = self.newList(of: profile, detector)
            list.restore(own)
            self.lists.withLock { $0[profile.limitKey] = list }
            if list.isSpiking { self.heldBack.set(1, of: profile.id) }
        }
        self.countTokens()
    }

    private func list(of profile: TenantProfile) -> RetiredTokenList {
        if let list = profile.retiredTokens.withLock({ $0 }) { return list }
        let list = self.lists.withLock { lists in
            if let list = lists[profile.limitKey] { return list }
            let list = self.newList(of: profile)
            lists[profile.limitKey] = list
            return list
        }
        profile.retiredTokens.withLock { $0 = list }
        return list
    }

    private func newList(of profile: TenantProfile, _ detector: SpikeDetector? = nil) -> RetiredTokenList {
        RetiredTokenList(
            of: RetiredTokenOwner(profile),
            detector: detector ?? SpikeDetector(at: self.clock.now()),
            isShared: self.isShared,
            writer: self.writer
        )
    }

    // MARK: Sends

    package func screen(
        _ target: Target,
        _ pseudonyms: [Pseudonym],
        of profile: TenantProfile,
        at now: Timestamp
    ) -> RetiredTokenScreening {
        let list = self.list(of: profile)
        guard !list.isEmpty, RetiredToken.Kind.of(target) != nil else { return .clear }
        return list.screen(pseudonyms, at: now)
    }

    func countRefused(_ count: Int) {
        self.refusals.increment(by: count)
    }

    /// Takes in what FCM answered.
    ///
    /// The pseudonyms are those of the target's recipients, in the same order; `isListed` says whether some of them
    /// were on the list before the call.
    func learn(
        _ result: SendResult,
        to target: Target,
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        // The way of nearly every send: nothing is gathered, nothing is locked.
        if !isListed, target.isLoneDevice, result.answer.isPlainAcceptance {
            self.list(of: profile).accept(1)
        } else {
            self.learnEach(result, target, pseudonyms, isListed: isListed, of: profile, at: now)
        }
    }

    @inline(never)  // Keeps what it needs out of the way of nearly every send.
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
        // A call that failed as a whole says nothing of its recipients, nor does a group's count.
        case .refused, .group: return
        }
        guard let kind = RetiredToken.Kind.of(target), outcomes.count == texts.count, pseudonyms.count == texts.count
        else { return }
        var accepted = 0
        var reports: [RetiredTokenTable.Report] = []
        for index in outcomes.indices {
            let evidence: RetiredTokenTable.Report.Evidence
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
            reports.append(RetiredTokenTable.Report(key: key, kind: kind, text: texts[index], evidence: evidence))
        }
        let list = self.list(of: profile)
        list.accept(accepted)
        guard !reports.isEmpty else { return }
        guard self.writer.hasRoom else { return self.leaveOut(reports.count) }
        self.note(list.learn(reports, at: now), in: list)
    }

    /// Leaves reports out; they come again with the next sends to their tokens.
    private func leaveOut(_ count: Int) {
        self.droppedChanges.increment(by: count)
        guard !self.isOverflowing.exchange(true, ordering: .relaxed) else { return }
        self.logger.error("Reports of retired tokens are left out, because too many wait to be written")
    }

    /// Tells operators that a spike began or ended.
    private func note(_ transition: SpikeDetector.Transition, in list: RetiredTokenList) {
        let tenant = list.owner.tenant
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

    // MARK: The tenant's view

    /// A tenant's feed after a cursor, or from its beginning; `invalid` for a cursor of another epoch.
    package func feed(
        of profile: TenantProfile,
        after cursor: RetiredTokenCursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let feed = try await self.store.feed(of: RetiredTokenOwner(profile), after: cursor, limit: limit)
        if feed.unreadable > 0 {
            self.logger.error(
                "Stored retired tokens do not open and are left out of the feed",
                metadata: ["tenant": "\(profile.id.text)", "tokens": .stringConvertible(feed.unreadable)]
            )
        }
        return feed
    }

    /// Takes a token off a tenant's list, at once in memory and within the flush interval in the store; whether it was
    /// there.
    func delete(_ pseudonym: Pseudonym, of profile: TenantProfile) -> Bool {
        self.list(of: profile).delete(pseudonym.high)
    }

    // MARK: Background work

    /// Writes until shutdown, then once more.
    ///
    /// Runs once. When the store refuses, it tries again, and reports by metric and log.
    package func run() async throws {
        precondition(!self.hasRun.exchange(true, ordering: .relaxed), "The list of retired tokens runs once")
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.settleRegularly() }
            group.addTask { await self.trimRegularly() }
            if self.isShared { group.addTask { await self.pollRegularly() } }
            group.addTask {
                try? await gracefulShutdown()
                self.settle()
                self.writer.close()
            }
            let lost = await self.writer.run()
            group.cancelAll()
            guard lost > 0 else { return }
            self.droppedChanges.increment(by: lost)
            let metadata: Logger.Metadata = ["changes": .stringConvertible(lost)]
            self.logger.error("The list of retired tokens ended before all was written", metadata: metadata)
        }
    }

    private func settleRegularly() async {
        while (try? await Task.sleep(for: self.configuration.settleInterval)) != nil { self.settle() }
    }

    private func pollRegularly() async {
        while (try? await Task.sleep(for: self.configuration.pollInterval)) != nil { await self.poll() }
    }

    /// Takes in what other replicas changed, and tells them what this one has counted; the first failure of several
    /// is logged, and so is their end.
    package func poll() async {
        defer { self.age?.set((self.uptime() - self.follower.withLock { $0.readAt }) / .seconds(1)) }
        do throws(GatewayError) {
            try await self.follow()
            // Not while the store fails, when nothing would bound what waits to be counted.
            let now = self.clock.now()
            for list in self.allLists { self.note(list.count(at: now), in: list) }
            self.pollOutage.succeeded()
        } catch {
            // A poll that the shutdown ends tells nothing of the store.
            if !Task.isCancelled { self.pollOutage.failed(error) }
        }
    }

    /// Reads what replicas changed since the last poll, page by page to the end: what a long transaction keeps from
    /// being passed is used all the same.
    private func follow() async throws(GatewayError) {
        let moment = self.uptime()
        guard case .changes(since: let bookmark) = self.follower.withLock({ $0.step(at: moment) }),
            var news = try await self.store.changes(since: bookmark)
        else { return try await self.load() }
        var held = self.follow(news)
        while news.bookmark.pageEnd != nil {
            guard let next = try await self.store.changes(since: news.bookmark) else { return try await self.load() }
            news = next
            held = [held, self.follow(news)].compactMap(\.self).min()
        }
        let (last, heldFrom) = (news, held)
        self.follower.withLock { $0.read(last, holdingFrom: heldFrom, askedAt: moment) }
    }

    /// Takes a page in; the place of the first change that can't be taken in yet.
    private func follow(_ news: RetiredTokenNews) -> RetiredTokenBookmark.Place? {
        let isNothing = news.changes.isEmpty && news.detectors.isEmpty && news.counts.isEmpty
        let known = isNothing ? [] : self.profiles()
        let profiles = Dictionary(known.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        var held: RetiredTokenBookmark.Place?
        for (tenant, changes) in Dictionary(grouping: news.changes, by: \.tenant) {
            // A tenant that another replica has just made is one that the directory will soon have.
            let place = profiles[tenant].map { self.list(of: $0).follow(changes) } ?? changes.first?.place
            if let place { held = min(held ?? place, place) }
        }
        for (tenant, detector) in news.detectors {
            guard let list = profiles[tenant].map({ self.list(of: $0) }) else { continue }
            self.note(list.adopt(detector), in: list)
        }
        let now = self.clock.now()
        for count in news.counts {
            let (accepted, unregistered) = self.follower.withLock { $0.increase(of: count) }
            guard accepted + unregistered > 0, let profile = profiles[count.counter.tenant] else { continue }
            let list = self.list(of: profile)
            self.note(list.hear(accepted: accepted, unregistered: unregistered, at: now), in: list)
        }
        if !news.changes.isEmpty { self.countTokens() }
        return held
    }

    private func trimRegularly() async {
        repeat {
            await self.trim()
        } while (try? await Task.sleep(for: self.configuration.trimInterval)) != nil
    }

    /// Feeds reports that no spike followed within an hour.
    package func settle() {
        let now = self.clock.now()
        for list in self.allLists { self.note(list.settle(at: now), in: list) }
        self.isOverflowing.store(false, ordering: .relaxed)
        self.countTokens()
    }

    /// Writes what waits; `false` when the store refused, and then it is kept.
    @discardableResult
    package func flush() async -> Bool {
        await self.writer.flush()
    }

    /// Drops what is too old or too much, in the store and in memory, and the lists of tenants that are gone.
    package func trim() async {
        self.dropListsOfGoneTenants()
        let cutoff = self.clock.now().advanced(by: .zero - self.configuration.retention)
        let dropped: [RetiredTokenEntry]
        do throws(GatewayError) {
            dropped = try await self.store.trim(reportedBefore: cutoff, keeping: self.configuration.maxEntries)
        } catch {
            self.logger.error(
                "Old entries of the list of retired tokens can't be dropped",
                metadata: ["cause": "\(error.message)"]
            )
            return
        }
        let byTenant = Dictionary(grouping: dropped, by: \.tenant)
        for list in self.allLists {
            if let own = byTenant[list.owner.tenant] { list.forget(own) }
        }
        self.countTokens()
    }

    private func dropListsOfGoneTenants() {
        // Before the tenants, so that the list of one that appears meanwhile is no candidate.
        let candidates = self.lists.withLock { Array($0.keys) }
        let living = Set(self.profiles().map(\.limitKey))
        let gone = self.lists.withLock { lists in
            candidates.filter { !living.contains($0) }.compactMap { lists.removeValue(forKey: $0) }
        }
        for tenant in Set(gone.filter(\.isSpiking).map(\.owner.tenant)) {
            // Another tenant of the same name may have a spike of its own.
            let isHeldBack = self.allLists.contains { $0.owner.tenant == tenant && $0.isSpiking }
            if !isHeldBack { self.heldBack.set(0, of: tenant) }
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
    /// What a target's recipients are; `nil` for one whose recipients can't retire.
    ///
    /// No initialiser, which would take the target over and so count its references.
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
    /// Whether one recipient was accepted and nothing more was said of it.
    fileprivate var isPlainAcceptance: Bool {
        guard case .recipients(let outcomes) = self, outcomes.count == 1, case .accepted(let acceptance) = outcomes[0]
        else { return false }
        return acceptance.replacementToken == nil
    }
}
