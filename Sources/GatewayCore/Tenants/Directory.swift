package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// All tenants with their credentials, keys and limits, in memory.
///
///     a change ──▶ store ──▶ its tenant's rows ─────┐
///                                                   ▼
///     hint(), catchUp() ──▶ reader ──▶ store ──▶  queue  ──▶ owner ──▶ snapshot ──▶ requests
///                                                   ▲          │
///     new default limits, time ─────────────────────┘          └──▶ observer, callers that wait
///
/// - **Snapshot**: an immutable value. A request reads it once, without waiting for the store, and sees one state.
/// - **Owner**: the one task that makes snapshots. It takes updates from the queue one by one, decrypts what is new,
///   swaps
///   the snapshot, calls the observer, and resumes the caller. It holds no lock meanwhile, and runs on the global pool:
///   thousands of credentials stall no event loop. It never waits for the store.
/// - **Reader**: the one task that asks the store what changed. Callers that come during a reading share the next one. A
///   reading that fails is repeated within a second. If other replicas change the store, a reading that hangs fails
///   after three seconds, and its repetition may find another connection. Repetitions have the store's own timeout, so
///   that a store which is only slow is read too.
///
/// A change is written by its caller, beside the reader, so the owner may see them in either order. Versions decide:
/// each change raises the store's version by one, and rows replace only what is shown of an earlier version. Example:
/// the snapshot shows everything up to version 5. This replica changes `acme` at 8, which is shown at once. A reading
/// at 7 then brings what `acme` and `globex` had at 7; only `globex` is replaced, and the snapshot shows everything up
/// to 7.
package final class Directory: Service {
    /// A row of the directory that is not served: it was made or changed without the master key, or by a later release.
    package struct RefusedRow: Sendable, Hashable, CustomStringConvertible {
        /// If a tenant's own row is refused, nothing of the tenant is served.
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

        package var description: String {
            switch self.kind {
            case .tenant: "tenant \(self.name)"
            case .key, .credential: "\(self.kind.rawValue) \(self.name) of tenant \(self.tenant?.text ?? "?")"
            }
        }
    }

    /// The changes since a version.
    package enum News: Sendable {
        case none
        /// The tenants that were changed, and their rows: none of a tenant that was deleted.
        case tenants(Set<TenantID>, Directory.Contents)
        /// Everything, if the store is not the one that the version was read from.
        case all(Directory.Contents)
    }

    /// One change of the directory.
    package enum Change: Sendable {
        /// Makes or replaces a tenant; a new one gets the salt, an existing one keeps its own.
        case putTenant(Tenant, salt: [UInt8])
        case deleteTenant(TenantID)
        /// Adds a version of a credential and forgets the earlier ones.
        case putCredential(StoredCredential)
        case deleteCredential(UpstreamKind, TenantID)
        case addKey(APIKey.Record)
        case putKey(APIKey.Record)
        /// Adds a key and shortens the life of another, in one step.
        case rotateKey(new: APIKey.Record, old: APIKey.Record)
        case removeKey(id: String, TenantID)
        case putLimits(TenantID, LimitOverrides)

        package var tenant: TenantID {
            switch self {
            case .putTenant(let tenant, salt: _): tenant.id
            case .deleteTenant(let id), .deleteCredential(_, let id), .removeKey(id: _, let id), .putLimits(let id, _):
                id
            case .putCredential(let credential): credential.tenant
            case .addKey(let key), .putKey(let key), .rotateKey(new: let key, old: _): key.tenant
            }
        }
    }

    /// The rows of all tenants, or of some.
    package struct Contents: Sendable {
        /// The version at which they were read.
        package var version = Directory.Version()
        package var tenants: [Tenant] = []
        /// The salt of each tenant's pseudonyms, destroyed with the tenant.
        package var salts: [TenantID: [UInt8]] = [:]
        /// The newest version of each credential.
        package var credentials: [StoredCredential] = []
        /// All keys, revoked ones included, also of tenants whose rows this version can't read.
        package var keys: [APIKey.Record] = []
        package var limits: [TenantID: LimitOverrides] = [:]
        /// Rows that are left out because their seal is not the gateway's, or because this version can't read them.
        package var refused: [RefusedRow] = []

        package init() {}

        /// Returns the rows of some tenants alone.
        package func of(_ ids: Set<TenantID>) -> Contents {
            var some = self
            some.tenants.removeAll { !ids.contains($0.id) }
            some.salts = some.salts.filter { ids.contains($0.key) }
            some.credentials.removeAll { !ids.contains($0.tenant) }
            some.keys.removeAll { !ids.contains($0.tenant) }
            some.limits = some.limits.filter { ids.contains($0.key) }
            some.refused.removeAll { $0.tenant.map(ids.contains) != true }
            return some
        }
    }

    /// A moment in the history of a store: its changes are numbered, and each is made after the one before it.
    package struct Version: Sendable, Hashable {
        /// The number of changes so far.
        package var number: Int64
        /// The place of the store, since a standby that takes over numbers its own changes; empty for a store of one
        /// process.
        package let origin: String

        package init(_ number: Int64 = 0, in origin: String = "") {
            self.number = number
            self.origin = origin
        }
    }

    private enum Update: Sendable {
        /// The rows of one tenant after a change that this replica made.
        case change(TenantID, Contents)
        /// The result of a reading, and the moment at which it began.
        case reading(News, begunAt: Uptime)
        case defaultLimits(LimitPolicies)
        /// Only time has passed.
        case time
    }

    /// Nothing enters it once it is closed.
    private struct Queue {
        /// Each is resumed with true once its update is shown, with false if it never will be.
        var updates: [(Update, CheckedContinuation<Bool, Never>)] = []
        /// Callers that wait for a reading that begins after they came.
        var readers: [CheckedContinuation<Result<Void, GatewayError>, Never>] = []
        var isClosed = false
    }

    /// The owner's own values, beside the snapshot.
    private struct State {
        var opener: DirectorySnapshot.Opener
        /// The snapshot has all that the store held at this moment.
        var confirmedAt: Uptime
    }

    /// The time after a reading in which notifications are gathered: showing a change costs more, the more tenants
    /// there are.
    private static let pause = Duration.milliseconds(50)

    private let store: any DirectoryStore
    /// Keys the pseudonyms of all tenants.
    let auditKey: Secret
    /// `nil` where no other replica changes the store.
    private let maxStale: Duration?
    private let uptime: @Sendable () -> Uptime
    private let readingTimeout: @Sendable () async -> Void
    private let observer: @Sendable (DirectorySnapshot) -> Void
    private let initial: State
    private let current: Mutex<DirectorySnapshot>
    private let queue = Mutex(Queue())
    private let arrivals = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let hints = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let refused: [RefusedRow.Kind: Meter]
    private let age: Meter?
    private let outage: OutageLog
    private let expiry: OutageLog
    private let logger: Logger

    /// A directory that shows what the store has; throws `storeUnavailable`.
    ///
    /// - Parameters:
    ///   - maxStale: the age at which a snapshot expires that can't be compared with the store; `nil` where no other
    ///     replica changes the store.
    ///   - uptime: a monotonic clock.
    ///   - readingTimeout: returns when a reading has taken too long, or when its task is cancelled.
    ///   - observer: gets each later snapshot once it is in force, outside locks and off the event loops.
    package init(
        store: any DirectoryStore,
        masterKey: MasterKey,
        auditKey: Secret,
        defaultLimits: LimitPolicies,
        maxStale: Duration? = nil,
        uptime: @escaping @Sendable () -> Uptime = { .now },
        readingTimeout: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(3)) },
        observer: @escaping @Sendable (DirectorySnapshot) -> Void = { _ in },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "directory") { _ in SwiftLogNoOpLogHandler() }
    ) async throws(GatewayError) {
        self.store = store
        self.auditKey = auditKey
        self.maxStale = maxStale
        self.uptime = uptime
        self.readingTimeout = readingTimeout
        self.observer = observer
        self.refused = metrics.gauges(.directoryRefusedRows, by: RefusedRow.Kind.self)
        self.age = maxStale.map { _ in metrics.gauge(.cacheAge, "directory") }
        self.logger = logger
        self.outage = OutageLog(
            "Changes of tenants, keys and limits can't be read; the last snapshot stays in use",
            end: "Changes of tenants, keys and limits can be read again",
            logger
        )
        self.expiry = OutageLog(
            "The directory could not be read for too long, so no key is accepted",
            end: "The directory can be read again, so keys are accepted",
            logger
        )
        let opener = DirectorySnapshot.Opener(masterKey: masterKey, auditKey: auditKey, defaultLimits: defaultLimits)
        self.initial = State(opener: opener, confirmedAt: uptime())
        let snapshot = await DirectorySnapshot(try await store.load(), opener)
        self.current = Mutex(snapshot)
        self.report(snapshot.refused, after: [])
    }

    package var snapshot: DirectorySnapshot { self.current.withLock { $0 } }

    /// True if other replicas change the store.
    var isShared: Bool { self.maxStale != nil }

    // MARK: Callers

    /// Makes one change in the store and waits until the snapshot shows it.
    ///
    /// Returns false, and changes nothing, if the tenant was changed since the version that the change was planned at.
    /// If the store's answer is lost, the store is read: a change that is there was made. An error that leaves the
    /// outcome unknown is thrown only if the reading fails too or finds no change. During shutdown a change is refused,
    /// or made and not shown.
    package func apply(_ change: Change, plannedAt version: Version) async throws(GatewayError) -> Bool {
        guard self.enter({ _ in }) else { throw Self.ended }
        let rows: Contents?
        do throws(GatewayError) {
            rows = try await self.store.apply(change, plannedAt: version)
        } catch {
            if error.leavesOutcomeUnknown, (try? await self.catchUp()) != nil, self.snapshot.shows(change) {
                return true
            }
            // The change may come late.
            if error.code == .storeUnavailable { self.hint() }
            throw error
        }
        guard let rows else { return false }
        await self.submit(.change(change.tenant, rows))
        return true
    }

    /// Shows all changes before the call; throws `storeUnavailable`.
    package func catchUp() async throws(GatewayError) {
        let result = await withCheckedContinuation { caller in
            if self.enter({ $0.readers.append(caller) }) {
                self.hint()
            } else {
                caller.resume(returning: .failure(Self.ended))
            }
        }
        try result.get()
    }

    /// Has the store read soon: a driver calls it when another replica has changed something.
    package func hint() { self.hints.continuation.yield() }

    /// Puts other limits in force for tenants that have none of their own; returns once they are.
    package func use(defaultLimits: LimitPolicies) async { await self.submit(.defaultLimits(defaultLimits)) }

    /// Returns true once the snapshot shows the update, false if the directory has ended.
    @discardableResult
    private func submit(_ update: Update) async -> Bool {
        await withCheckedContinuation { caller in
            if self.enter({ $0.updates.append((update, caller)) }) {
                self.arrivals.continuation.yield()
            } else {
                caller.resume(returning: false)
            }
        }
    }

    /// Returns false, and changes nothing, if the directory has ended.
    private func enter(_ change: (inout Queue) -> Void) -> Bool {
        self.queue.withLock { queue in
            if !queue.isClosed { change(&queue) }
            return !queue.isClosed
        }
    }

    private static let ended = GatewayError(.storeUnavailable, "The gateway is shutting down; nothing was done")

    // MARK: Tasks

    /// Runs the owner and the reader until shutdown; callers that still wait then are refused.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            // Wherever the service runs: a request's event loop would be inherited.
            group.addTask(executorPreference: globalConcurrentExecutor) { await self.own() }
            group.addTask { await self.read() }
            group.addTask { await self.keepTime() }
        }
    }

    private func own() async {
        var state = self.initial
        for await _ in self.arrivals.stream.cancelOnGracefulShutdown() {
            for (update, caller) in self.queue.withLock({ exchange(&$0.updates, with: []) }) {
                await self.show(update, &state)
                caller.resume(returning: true)
            }
        }
        let (updates, readers) = self.queue.withLock { queue in
            queue.isClosed = true
            return (exchange(&queue.updates, with: []), exchange(&queue.readers, with: []))
        }
        for (_, caller) in updates { caller.resume(returning: false) }
        for reader in readers { reader.resume(returning: .failure(Self.ended)) }
    }

    private func read() async {
        for await _ in self.hints.stream.cancelOnGracefulShutdown() {
            let readers = self.queue.withLock { exchange(&$0.readers, with: []) }
            let result: Result<Void, GatewayError>
            do throws(GatewayError) {
                let begin = self.uptime()
                let news = try await self.changes(since: self.snapshot.version)
                guard await self.submit(.reading(news, begunAt: begin)) else { throw Self.ended }
                self.outage.succeeded()
                result = .success(())
            } catch {
                // A reading that the shutdown ends says nothing about the store.
                if !Task.isCancelled, await self.submit(.time) { self.outage.failed(error) }
                result = .failure(error)
            }
            for reader in readers { reader.resume(returning: result) }
            if readers.isEmpty { try? await Task.sleep(for: Self.pause) }
        }
    }

    private func changes(since version: Version) async throws(GatewayError) -> News {
        guard self.isShared, !self.outage.isFailing else { return try await self.store.changes(since: version) }
        let silence = GatewayError(.storeUnavailable, "The store did not answer in time")
        return try await withTaskGroup(of: Result<News, GatewayError>.self) { group in
            group.addTask {
                do throws(GatewayError) {
                    return .success(try await self.store.changes(since: version))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                await self.readingTimeout()
                return .failure(silence)
            }
            // A store lets a cancelled reader go at once.
            defer { group.cancelAll() }
            return await group.next() ?? .failure(silence)
        }
        .get()
    }

    private func keepTime() async {
        while (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1)) }) != nil,
            !Task.isShuttingDownGracefully
        {
            guard self.isShared || self.outage.isFailing else { continue }
            self.hint()
            // A store that hangs ends no reading, and the snapshot has to expire all the same.
            await self.submit(.time)
        }
    }

    // MARK: The owner's work

    private func show(_ update: Update, _ state: inout State) async {
        let old = self.snapshot
        var new = old
        switch update {
        case .change(let tenant, let rows):
            let distance = rows.version.number - old.version.number
            new = await old.replacing([tenant], with: rows, isComplete: distance == 1, state.opener)
            // A reading brings the changes that lie between.
            if distance > 1 { self.hint() }
        case .reading(let news, let begin):
            state.confirmedAt = begin
            switch news {
            case .none: break
            case .tenants(let tenants, let rows):
                new = await old.replacing(tenants, with: rows, isComplete: true, state.opener)
            case .all(let rows): new = await DirectorySnapshot(rows, after: old, state.opener)
            }
        case .defaultLimits(let limits):
            state.opener.defaultLimits = limits
            new = old.limited(state.opener)
        case .time: break
        }
        let isExpired = self.isExpired(since: state.confirmedAt)
        if new.isExpired != isExpired { new = new.expired(isExpired) }
        guard new !== old else { return }
        // The old snapshot is released after the lock, which every request takes.
        self.current.withLock { $0 = new }
        self.report(new.refused, after: old.refused)
        self.observer(new)
    }

    /// True if the snapshot could not be compared with the store for too long: keys may have been revoked meanwhile.
    private func isExpired(since confirmedAt: Uptime) -> Bool {
        guard let maxStale = self.maxStale else { return false }
        let age = self.uptime() - confirmedAt
        self.age?.set(age / .seconds(1))
        guard age > maxStale else {
            self.expiry.succeeded()
            return false
        }
        self.expiry.failed(GatewayError(.storeUnavailable, "The store has not answered within store.maxStaleMs"))
        return true
    }

    private func report(_ refused: Set<RefusedRow>, after earlier: Set<RefusedRow>) {
        for (kind, meter) in self.refused { meter.set(refused.count { $0.kind == kind }) }
        let new = refused.subtracting(earlier)
        guard let first = new.first else { return }
        self.logger.error(
            "Rows in the store are foreign, a later release's, or sealed by another master key; they are not served.",
            metadata: ["rows": .stringConvertible(new.count), "first": "\(first)"]
        )
    }
}

/// Stores tenants with their credentials, keys and limits. All methods throw `storeUnavailable`.
package protocol DirectoryStore: Sendable {
    /// Returns everything, read at one version.
    func load() async throws(GatewayError) -> Directory.Contents

    /// Makes one change in one transaction, and returns the rows of its tenant after it: none if it was deleted. The
    /// cost does not grow with the number of tenants.
    ///
    /// Returns `nil`, and changes nothing, if the tenant was made, changed or deleted since the version, or if the
    /// store is another one: the plan is out of date.
    ///
    /// Throws also `notFound` if the change needs a tenant or key that is not there, and `conflict` if what it adds is
    /// there already or what it builds on is a refused row.
    func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents?

    /// Returns the changes since a version, all read at one version. Ends as soon as its task is cancelled.
    func changes(since version: Directory.Version) async throws(GatewayError) -> Directory.News
}
