package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// The directory in memory: the current snapshot, swapped whole.
///
/// Look-ups never touch the store. A request reads ``snapshot`` once and keeps it, so that it sees one state. A change
/// brings what its tenant has then, and nothing is read or opened of any other. Where other replicas change the store,
/// their changes are asked for once a second, by the version that each of them raises; a change that was planned from a
/// snapshot which lacks one of its tenant's is not made.
package final class Directory: Service {
    private struct State {
        var opener: DirectorySnapshot.Opener
        /// Reads of the whole store that have begun, and those of them that have not ended.
        var reads = 0
        var openReads = 0
        /// The read that was shown last.
        var newestRead = 0
        /// By tenant, how many reads had begun when it was changed; only while a read is open.
        var changes: [TenantID: Int] = [:]
        /// Every change up to this version is shown.
        var version: Int64 = 0
        /// Where the store was whose version that is.
        var origin = ""
        /// `nil` where nobody else changes the store.
        var freshness: SnapshotFreshness?

        func isExpired(at now: ContinuousClock.Instant) -> Bool { self.freshness?.isExpired(at: now) ?? false }
    }

    private static let retryInterval = Duration.seconds(1)
    private static let pollInterval = Duration.seconds(1)

    private let store: any DirectoryStore
    private let state: Mutex<State>
    private let current = Mutex(DirectorySnapshot())
    private let observer = Mutex<(@Sendable (DirectorySnapshot) -> Void)?>(nil)
    private let retries: AsyncStream<Void>
    private let retryContinuation: AsyncStream<Void>.Continuation
    private let polls = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let refused: [RefusedRow.Kind: Meter]
    /// `nil` where nobody else changes the store.
    private let age: Meter?
    private let outage: OutageLog
    private let expiry: OutageLog
    private let logger: Logger

    /// A directory that starts empty; call ``reload()`` before serving. Where other replicas change the store, the limit
    /// says for how long a snapshot is used that can't be compared with it.
    package init(
        store: any DirectoryStore,
        masterKey: MasterKey,
        auditKey: Secret,
        defaultLimits: LimitPolicies,
        maxStale: Duration? = nil,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "directory") { _ in SwiftLogNoOpLogHandler() }
    ) {
        self.store = store
        let opener = DirectorySnapshot.Opener(
            masterKey: masterKey,
            auditKey: auditKey,
            defaultLimits: defaultLimits
        )
        let freshness = maxStale.map { SnapshotFreshness(limit: $0, confirmedAt: uptime()) }
        self.state = Mutex(State(opener: opener, freshness: freshness))
        self.uptime = uptime
        self.refused = metrics.gauges(.directoryRefusedRows, by: RefusedRow.Kind.self)
        self.age = maxStale.map { _ in metrics.gauge(.cacheAge, "directory") }
        self.logger = logger
        self.outage = OutageLog(
            "Other replicas' changes of tenants, keys and limits can't be read; what is known is served",
            end: "Other replicas' changes of tenants, keys and limits are known again",
            logger
        )
        self.expiry = OutageLog(
            "The directory could not be read for too long, so no key is accepted any more",
            end: "The directory can be read again, so keys are accepted",
            logger
        )
        (self.retries, self.retryContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        for meter in self.refused.values { meter.set(0) }
    }

    package var snapshot: DirectorySnapshot {
        self.current.withLock { $0 }
    }

    /// What makes the pseudonyms of a tenant that is about to be made.
    func pseudonymizer(tenantSalt: [UInt8]) -> Pseudonymizer {
        Pseudonymizer(auditKey: self.state.withLock { $0.opener.auditKey }, tenantSalt: tenantSalt)
    }

    /// Has every snapshot from now on handed to an observer too, after it has come into force; off the event loops.
    package func whenChanged(_ observer: @escaping @Sendable (DirectorySnapshot) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    /// Whether other replicas change the store.
    var isShared: Bool { self.state.withLock { $0.freshness != nil } }

    /// What a change of a tenant is planned from: the newest snapshot, and the version up to which it shows the tenant, or
    /// that there is none.
    package func basis(of tenant: TenantID) -> (DirectorySnapshot, DirectoryVersion) {
        self.state.withLock { state in
            let snapshot = self.snapshot
            // A change of this replica's own is shown before all others up to it are.
            let number = max(state.version, snapshot.tenants[tenant]?.version ?? 0)
            return (snapshot, DirectoryVersion(number, in: state.origin))
        }
    }

    /// Makes one change in the store, and shows its tenant as it is then: the change is in force when this returns true.
    ///
    /// It is not made, and this returns false, where the tenant was changed since the version that it was planned at.
    ///
    /// Changes of one tenant must come one after the other. When the store fails it may have made the change all the
    /// same: where nobody knows it is looked up, and everything is read again soon. The error that is thrown then leaves
    /// the outcome unknown.
    package func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> Bool {
        let answer: DirectoryContents?
        do throws(GatewayError) {
            answer = try await self.store.apply(change, plannedAt: version)
        } catch {
            if error.leavesOutcomeUnknown {
                // Also for a caller that has gone, since the audit wants to know as well.
                let reading = Task { try await self.catchUp() }
                if (try? await reading.value) != nil, self.snapshot.shows(change) { return true }
            }
            if error.code == .storeUnavailable { self.retryContinuation.yield() }
            throw error
        }
        guard let contents = answer else { return false }
        let refused = self.state.withLock { state -> Set<RefusedRow> in
            // A reading that was shown meanwhile has seen this change, and perhaps another replica's after it.
            guard contents.version >= state.version, version.origin == state.origin else { return [] }
            if state.openReads > 0 { state.changes[change.tenant] = state.reads }
            // With this one every change is shown up to it, unless others came in between.
            if contents.version == state.version + 1 { state.version = contents.version }
            return self.show(self.snapshot.replacing(change.tenant, with: contents, state.opener), state)
        }
        self.announce(refused)
        return true
    }

    /// Reads the whole store and swaps the snapshot; where the store fails, the old one stays.
    package func reload() async throws(GatewayError) {
        let begin = self.beginReading()
        defer { self.endReading() }
        self.show(try await self.store.load(), readSince: begin)
    }

    /// What is known when a reading begins; it sees the store as of then, or as of a later moment.
    private struct ReadingBegin {
        let read: Int
        let version: Int64
        let origin: String
        let opener: DirectorySnapshot.Opener
        let time: ContinuousClock.Instant
    }

    private func beginReading() -> ReadingBegin {
        self.state.withLock { state in
            state.reads += 1
            state.openReads += 1
            return ReadingBegin(
                read: state.reads,
                version: state.version,
                origin: state.origin,
                opener: state.opener,
                time: self.uptime()
            )
        }
    }

    private func endReading() {
        self.state.withLock { state in
            state.openReads -= 1
            if state.openReads == 0 { state.changes = [:] }
        }
    }

    private func show(_ contents: DirectoryContents, readSince begin: ReadingBegin) {
        let (read, opener) = (begin.read, begin.opener)
        // Outside the lock: this may be thousands of envelopes.
        let loaded = DirectorySnapshot(contents, after: self.snapshot, opener)
        let refused = self.state.withLock { state -> Set<RefusedRow> in
            // A read that began later has seen more, and so has a change that was shown since this one began.
            guard read > state.newestRead else { return [] }
            state.newestRead = read
            state.freshness?.confirm(at: begin.time)
            let later = state.changes.filter { $0.value >= read }.keys
            // What was shown of these may be older than another replica's change, which is then asked for again.
            if later.isEmpty { (state.version, state.origin) = (contents.version, contents.origin) }
            let merged = later.isEmpty ? loaded : loaded.replacing(later, asIn: self.snapshot)
            guard opener.defaultLimits != state.opener.defaultLimits else { return self.show(merged, state) }
            return self.show(merged.limited(state.opener), state)
        }
        self.announce(refused)
    }

    // MARK: Changes of other replicas

    /// Shows what was changed since the last reading, of the changed tenants alone; throws `storeUnavailable`.
    package func catchUp() async throws(GatewayError) {
        let begin = self.beginReading()
        defer { self.endReading() }
        switch try await self.store.changes(since: begin.version, in: begin.origin) {
        case .none: self.show([:], version: begin.version, readSince: begin)
        case .tenants(let changed, let version): self.show(changed, version: version, readSince: begin)
        case .all(let contents): self.show(contents, readSince: begin)
        }
    }

    /// Shows what other replicas changed.
    ///
    /// A store that fails is asked again with the next poll; the first failure of several is logged, and so is their end.
    package func refresh() async {
        defer { self.checkAge() }
        do throws(GatewayError) {
            try await self.catchUp()
            self.outage.succeeded()
        } catch {
            // A poll that the shutdown ends tells nothing of the store.
            if !Task.isCancelled { self.outage.failed(error) }
        }
    }

    /// Measures how old the snapshot is. One that could not be compared with the store for too long expires, since keys
    /// may have been revoked meanwhile.
    private func checkAge() {
        let freshness = self.state.withLock { state in
            if state.isExpired(at: self.uptime()) != self.snapshot.isExpired { _ = self.show(self.snapshot, state) }
            return state.freshness
        }
        guard let freshness else { return }
        self.age?.set(freshness.age(at: self.uptime()) / .seconds(1))
        guard self.snapshot.isExpired else { return self.expiry.succeeded() }
        self.expiry.failed(GatewayError(.storeUnavailable, "The store has not answered within store.maxStaleMs"))
    }

    private func show(_ changed: [TenantID: DirectoryContents], version: Int64, readSince begin: ReadingBegin) {
        let refused = self.state.withLock { state -> Set<RefusedRow> in
            // Versions of one store say nothing beside another's that was read meanwhile; and of two readings at the same
            // time the one that began later may have seen less.
            guard begin.read > state.newestRead, begin.origin == state.origin, version >= state.version else {
                return []
            }
            state.newestRead = begin.read
            state.freshness?.confirm(at: begin.time)
            var snapshot = self.snapshot
            var isWhole = true
            for (tenant, contents) in changed {
                // This replica has shown a change of its own meanwhile; which of the two is later, the next poll tells.
                guard state.changes[tenant] ?? 0 < begin.read else {
                    isWhole = false
                    continue
                }
                snapshot = snapshot.replacing(tenant, with: contents, state.opener)
            }
            if isWhole { state.version = max(state.version, version) }
            guard !changed.isEmpty || snapshot.isExpired else { return [] }
            return self.show(snapshot, state)
        }
        if !changed.isEmpty { self.announce(refused) }
    }

    /// Has changes asked for at once instead of with the next poll: a driver calls it that hears of them.
    package func hint() {
        self.polls.continuation.yield()
    }

    private func poll() async {
        for await _ in self.polls.stream.cancelOnGracefulShutdown() { await self.refresh() }
    }

    private func remind() async {
        while (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.pollInterval) }) != nil,
            !Task.isShuttingDownGracefully
        {
            // Here as well, because a store that hangs answers no poll.
            self.checkAge()
            self.hint()
        }
    }

    /// Asks for others' changes, if there are others, and repeats readings that failed, until shutdown.
    package func run() async throws {
        let isShared = self.state.withLock { $0.freshness != nil }
        await withDiscardingTaskGroup { group in
            if isShared {
                group.addTask { await self.poll() }
                group.addTask { await self.remind() }
            }
            await self.retryReadings()
        }
    }

    /// What was changed comes into force late rather than never.
    private func retryReadings() async {
        for await _ in self.retries.cancelOnGracefulShutdown() {
            var isDone = false
            while !isDone, await Self.pause() { isDone = (try? await self.reload()) != nil }
        }
    }

    /// Waits for the next attempt; says whether there shall be one.
    private static func pause() async -> Bool {
        (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.retryInterval) }) != nil
            && !Task.isShuttingDownGracefully
    }

    /// Puts other limits in force for the tenants that have none of their own; the store is not asked.
    package func use(defaultLimits: LimitPolicies) {
        let refused = self.state.withLock { state in
            state.opener.defaultLimits = defaultLimits
            return self.show(self.snapshot.limited(state.opener), state)
        }
        self.announce(refused)
    }

    /// Swaps the snapshot, under the lock of the state, so that none is built on one that is replaced meanwhile; gives
    /// the rows that are refused from now on.
    private func show(_ new: DirectorySnapshot, _ state: State) -> Set<RefusedRow> {
        // A slow answer may be older than the limit when it comes.
        let isExpired = state.isExpired(at: self.uptime())
        let snapshot = new.isExpired == isExpired ? new : new.expired(isExpired)
        // The old one is released outside the lock that every request takes.
        let old = self.current.withLock { current in
            defer { current = snapshot }
            return current
        }
        guard old.refused != snapshot.refused else { return [] }
        for (kind, meter) in self.refused { meter.set(snapshot.refused.count { $0.kind == kind }) }
        return snapshot.refused.subtracting(old.refused)
    }

    /// Tells observer and log of what was shown; outside the lock.
    private func announce(_ refused: Set<RefusedRow>) {
        // The newest, whichever of two changes comes here first.
        self.observer.withLock { $0?(self.snapshot) }
        guard let first = refused.first else { return }
        self.logger.error(
            "Rows in the store are foreign, a later release's, or sealed by another master key; they are not served.",
            metadata: ["rows": .stringConvertible(refused.count), "first": "\(first)"]
        )
    }
}

/// For how long a snapshot may be used that can't be compared with the store. Pure.
struct SnapshotFreshness: Sendable, Hashable {
    let limit: Duration
    private var confirmedAt: ContinuousClock.Instant

    init(limit: Duration, confirmedAt: ContinuousClock.Instant) {
        (self.limit, self.confirmedAt) = (limit, confirmedAt)
    }

    /// Notes that the snapshot has all that the store held at a moment.
    mutating func confirm(at moment: ContinuousClock.Instant) {
        self.confirmedAt = max(self.confirmedAt, moment)
    }

    func age(at now: ContinuousClock.Instant) -> Duration { now - self.confirmedAt }

    func isExpired(at now: ContinuousClock.Instant) -> Bool { self.age(at: now) > self.limit }
}

/// Up to where somebody has seen the changes of a store.
package struct DirectoryVersion: Sendable, Hashable {
    /// How many changes had been made.
    package let number: Int64
    /// Where the store was; empty where one process has it to itself.
    package let origin: String

    package init(_ number: Int64, in origin: String) {
        (self.number, self.origin) = (number, origin)
    }
}

/// What was changed since a version of the directory.
package enum DirectoryNews: Sendable {
    case none
    /// What these tenants have now, nothing where they are gone; and the version that this brings the reader to.
    case tenants([TenantID: DirectoryContents], version: Int64)
    /// Everything: the store is not the one that the version was read from.
    case all(DirectoryContents)
}

/// What the directory holds, or as much of it as belongs to one tenant.
package struct DirectoryContents: Sendable {
    /// How many changes had been made when this was read.
    package var version: Int64 = 0
    /// Where the store was when everything was read: another one that took its place counts its own versions.
    package var origin = ""
    package var tenants: [Tenant] = []
    /// What each tenant's pseudonyms are salted with; destroyed with the tenant.
    package var salts: [TenantID: [UInt8]] = [:]
    /// The newest version of each credential.
    package var credentials: [StoredCredential] = []
    /// All keys, revoked ones included, also of tenants whose rows this version can't read.
    package var keys: [APIKeyRecord] = []
    package var limits: [TenantID: LimitOverrides] = [:]
    /// Rows that are left out because their seal is not the gateway's, or because this version can't read them.
    package var refused: [RefusedRow] = []

    package init() {}
}

/// A row of the directory that is not served: somebody without the master key made or changed it, or a later release
/// wrote what this one can't read.
package struct RefusedRow: Sendable, Hashable {
    /// What a row is of; nothing of a tenant is served whose own row is refused.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case tenant
        case key
        case credential
    }

    package let kind: Kind
    /// The tenant that the row names, if that is a tenant's name.
    package let tenant: TenantID?
    /// The row's own name, as it stands in the store: the tenant, the key's id, or the credential's protocol.
    package let name: String

    package init(_ kind: Kind, _ name: String, of tenant: TenantID?) {
        self.kind = kind
        self.tenant = tenant
        self.name = name
    }
}

extension RefusedRow: CustomStringConvertible {
    package var description: String {
        switch self.kind {
        case .tenant: "tenant \(self.name)"
        case .key, .credential: "\(self.kind.rawValue) \(self.name) of tenant \(self.tenant?.text ?? "?")"
        }
    }
}

/// One change of the directory.
package enum DirectoryChange: Sendable {
    /// Makes or replaces a tenant; a new one gets the salt, an existing one keeps its own.
    case putTenant(Tenant, salt: [UInt8])
    case deleteTenant(TenantID)
    /// Adds a version of a credential and forgets the earlier ones.
    case putCredential(StoredCredential)
    case deleteCredential(UpstreamKind, TenantID)
    case addKey(APIKeyRecord)
    case putKey(APIKeyRecord)
    /// Adds a key and shortens the life of another, in one step.
    case rotateKey(new: APIKeyRecord, old: APIKeyRecord)
    case removeKey(id: String, TenantID)
    case putLimits(TenantID, LimitOverrides)

    package var tenant: TenantID {
        switch self {
        case .putTenant(let tenant, salt: _): tenant.id
        case .deleteTenant(let id), .deleteCredential(_, let id), .removeKey(id: _, let id), .putLimits(let id, _): id
        case .putCredential(let credential): credential.tenant
        case .addKey(let key), .putKey(let key), .rotateKey(new: let key, old: _): key.tenant
        }
    }
}

/// Keeps tenants, their credentials, keys and limits.
package protocol DirectoryStore: Sendable {
    /// Everything, as one consistent snapshot; throws `storeUnavailable`.
    func load() async throws(GatewayError) -> DirectoryContents

    /// Makes one change in one transaction, and reads in it what there is of the changed tenant then, nothing when it
    /// was deleted; its cost does not grow with the number of tenants.
    ///
    /// Returns `nil`, and changes nothing, where the tenant was changed since the version, also where that made or deleted
    /// it, or where the store is another one by now: the change was planned from what is no longer so.
    ///
    /// Throws `storeUnavailable`; `notFound` where the change needs a tenant or key that is not there; `conflict` where
    /// what it adds is there already, or what it builds on is a refused row.
    func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents?

    /// What was changed since a version of the store at an origin, in one consistent snapshot; throws `storeUnavailable`.
    func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews
}
