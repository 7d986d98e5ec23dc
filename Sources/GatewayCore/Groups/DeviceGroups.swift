package import FCMModel
import ServiceLifecycle
import Synchronization

/// Tenants' device groups: what the gateway knows of them, kept in step with FCM.
///
/// Whatever FCM is asked to change is written down before and after, so that the next request can finish what a crash
/// broke off. Two writers of one group follow each other; across replicas by the group's lease, within which each call to
/// FCM has to end. Whoever takes over what another replica left asks FCM for the group's key anew.
package final class DeviceGroups: Service {
    /// How often other replicas' keys are asked for.
    private static let pollInterval = Duration.seconds(1)
    /// The most tokens of a group that are written down with those that FCM is asked to remove on a caller's word alone:
    /// a removal that FCM does not answer stays open.
    private static let maxOpenTokens = 2 * GroupChange.maxTokens
    /// The outcome, in metrics, of a request that was carried out.
    private static let done = "done"

    private let store: any GroupStore
    private let upstream: any GroupUpstream
    private let limiter: any RateLimiter
    private let audit: AuditLog
    private let clock: any WallClock
    let metrics: TenantCounters
    /// The groups as sends see them.
    let known: KnownGroups
    private let locks = KeyedLock<[String]>()
    private let leases: GroupLeases?

    /// - Parameters:
    ///   - lookUpTimeout: the longest that a send waits for what the store says of its groups.
    ///   - nameTimeout: the same for a send to a group by its name that is not cached.
    ///   - uptime: a monotonic clock.
    package init(
        store: any GroupStore,
        upstream: any GroupUpstream,
        limiter: any RateLimiter,
        audit: AuditLog,
        clock: any WallClock,
        leases: GroupLeases? = nil,
        lookUpTimeout: Duration = .milliseconds(250),
        nameTimeout: Duration = .seconds(2),
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.leases = leases
        self.known = KnownGroups(store: store, timeout: lookUpTimeout, nameTimeout: nameTimeout, uptime: uptime)
        self.store = store
        self.upstream = upstream
        self.limiter = limiter
        self.audit = audit
        self.clock = clock
        self.metrics = TenantCounters(
            .deviceGroupRequests,
            metrics,
            watching: [],
            startingWith: AuditAction.allCases.filter { $0.scope == .manageDeviceGroups }.map(\.rawValue),
            Self.done
        )
    }

    // MARK: Changing

    /// Makes a group hold exactly 1 to 20 different tokens; one that FCM does not have is made. Says whether the
    /// gateway did not know it before.
    ///
    /// Throws `group_too_large`, `group_conflict`, `no_valid_tokens`, or what keeps FCM or the store from serving, as
    /// all changes do.
    package func put(
        _ name: String,
        tokens: [String],
        by caller: Caller
    ) async throws(Refusal) -> (DeviceGroup, isNew: Bool) {
        try await self.changing(name, .deviceGroupPut, tokens, by: caller) { group, upstreamCode throws(Refusal) in
            try Self.checkCount(tokens)
            let isNew = !group.isStored
            let reconciliation = GroupReconciliation(group, toward: tokens, verifies: true)
            let result = try await self.reconcile(reconciliation, by: caller, &upstreamCode)
            return (result ?? group, isNew)
        }
    }

    /// Throws `not_found` where there is no group.
    package func add(_ tokens: [String], to name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup {
        try await self.changing(name, .deviceGroupAdd, tokens, by: caller) { group, upstreamCode throws(Refusal) in
            let wanted = group.tokens + tokens.filter { !group.tokens.containsToken($0) }
            try Self.checkCount(wanted)
            let reconciliation = GroupReconciliation(group, toward: wanted, mustExist: !group.isStored)
            let result = try await self.reconcile(reconciliation, by: caller, &upstreamCode)
            guard let result else { throw .groupNotFound }
            return result
        }
    }

    /// `nil` where the group is gone: with its last member FCM deletes it. Throws `not_found` where there was none.
    package func remove(
        _ tokens: [String],
        from name: String,
        by caller: Caller
    ) async throws(Refusal) -> DeviceGroup? {
        try await self.changing(name, .deviceGroupRemove, tokens, by: caller) { group, upstreamCode throws(Refusal) in
            let found = group.isStored ? group : try await self.lookUp(group, by: caller, &upstreamCode)
            guard let known = found else { throw .groupNotFound }
            let others = tokens.filter { !known.members.map(\.token).containsToken($0) }
            guard others.isEmpty || known.members.count + others.count <= Self.maxOpenTokens else {
                throw Refusal(.groupConflict, "Too many removals are open; repeat those, or declare the members")
            }
            let reconciliation = GroupReconciliation(
                known,
                toward: known.tokens.filter { !tokens.containsToken($0) },
                removing: tokens,
                mayRemain: true
            )
            return try await self.reconcile(reconciliation, by: caller, &upstreamCode)
        }
    }

    /// Removes every member, so that FCM deletes the group. Throws `not_found` for a group that neither the gateway nor
    /// FCM knows, `conflict` for one with members that the gateway does not know.
    package func delete(_ name: String, by caller: Caller) async throws(Refusal) {
        try await self.changing(name, .deviceGroupDelete, [], by: caller) { group, upstreamCode throws(Refusal) in
            let result = try await self.reconcile(GroupReconciliation(group, toward: []), by: caller, &upstreamCode)
            if result == nil, !group.isStored { throw Refusal.groupNotFound }
        }
    }

    private static func checkCount(_ tokens: [String]) throws(Refusal) {
        guard tokens.count <= GroupChange.maxTokens else {
            let detail = "The group would have \(tokens.count) members; it may have \(GroupChange.maxTokens)"
            throw Refusal(.groupTooLarge, detail)
        }
    }

    private static func checkCount(_ tokens: [String], with members: [DeviceGroup.Member]) throws(Refusal) {
        try Self.checkCount(tokens + members.map(\.token).filter { !tokens.containsToken($0) })
    }

    // MARK: Knowing

    /// A group as the gateway knows it; where it knows no key, FCM is asked for one. The group has a key; `nil` where
    /// FCM has no such group.
    package func group(_ name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup? {
        if let known = try await self.stored(name, of: caller.profile), known.key != nil { return known }
        return try await self.lookUp(name, by: caller)
    }

    /// The same for a group of which the store had no key a moment ago.
    private func lookUp(_ name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup? {
        try await self.locked(name, by: caller) { () throws(Refusal) in
            let known = try await self.known(name, of: caller.profile)
            if known.key != nil { return known }
            var upstreamCode: String?
            return try await self.lookUp(known, by: caller, &upstreamCode)
        }
    }

    /// Shows a group, and records that somebody looked; `nil` where neither the gateway nor FCM knows it.
    package func show(_ name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup? {
        try await self.recording(.deviceGroupGet, name, [], by: caller) { _ throws(Refusal) in
            try await self.group(name, by: caller)
        }
    }

    /// A group as the gateway has it written down; FCM is not asked.
    package func stored(_ name: String, of profile: TenantProfile) async throws(Refusal) -> DeviceGroup? {
        let group = try await Self.refusing { () throws(GatewayError) in
            try await self.store.group(named: name, of: profile.id)
        }
        // A tenant that was made anew has groups of its own.
        return group?.tenantCreatedAt == profile.tenant.createdAt ? group : nil
    }

    /// The same, or a group of which nothing is known yet.
    private func known(_ name: String, of profile: TenantProfile) async throws(Refusal) -> DeviceGroup {
        if let group = try await self.stored(name, of: profile) { return group }
        return DeviceGroup(
            tenant: profile.id,
            tenantCreatedAt: profile.tenant.createdAt,
            name: name,
            upstreamName: profile.upstreamGroupName(name),
            updatedAt: self.clock.now()
        )
    }

    package func names(after name: String?, limit: Int, by caller: Caller) async throws(Refusal) -> [String] {
        try await self.recording(.deviceGroupList, nil, [], by: caller) { _ throws(Refusal) in
            try await Self.refusing { () throws(GatewayError) in
                try await self.store.names(of: caller.profile.id, after: name, limit: limit)
            }
        }
    }

    /// Forgets a key that FCM no longer takes, so that the next user of the group asks for another.
    ///
    /// Whoever changes the group at this moment finds out as well, so that it does no harm when this has to give up.
    func forget(key: String, of name: String, by caller: Caller) async {
        self.known.drop(name, of: caller.profile)
        // The send would wait for it.
        guard !self.known.isStoreFailing else { return }
        try? await self.locked(name, by: caller) { () throws(Refusal) in
            guard var group = try await self.stored(name, of: caller.profile), group.key == key else { return }
            group.key = nil
            _ = try await self.save(group)
        }
    }

    /// Asks FCM for a group's key; `nil` where FCM has no such group.
    private func lookUp(
        _ group: DeviceGroup,
        by caller: Caller,
        _ upstreamCode: inout String?
    ) async throws(Refusal) -> DeviceGroup? {
        var group = group
        let result = await self.ask(.lookUp(name: group.upstreamName), of: group.name, by: caller)
        upstreamCode = result.upstreamCode
        switch result.answer {
        case .success(let key):
            group.key = key
            return try await self.save(group)
        case .failure(let failure):
            guard failure.kind == .groupNotFound else { throw Refusal(failure) }
            return nil
        }
    }

    // MARK: Steps

    /// Takes the steps of a reconciliation, each of them written down before it is taken; gives the group as it is
    /// then, `nil` where there is none.
    private func reconcile(
        _ reconciliation: GroupReconciliation,
        by caller: Caller,
        _ upstreamCode: inout String?
    ) async throws(Refusal) -> DeviceGroup? {
        var reconciliation = reconciliation
        var saved = reconciliation.original
        while true {
            let step = reconciliation.next()
            if case .absent = step {
                if saved.isStored { try await self.forget(saved) }
                return nil
            }
            if reconciliation.group.isEmpty {
                // What FCM does not have and refuses to make is nothing to remember.
                if saved.isStored, reconciliation.isAbsent, case .refused = step { try await self.forget(saved) }
            } else if reconciliation.group != saved {
                saved = try await self.save(reconciliation.group)
                reconciliation.stored(version: saved.version, at: saved.updatedAt)
            }
            switch step {
            case .call(let request):
                let result = await self.ask(request, of: saved.name, by: caller)
                upstreamCode = result.upstreamCode
                reconciliation.received(result, of: request)
            case .settled: return reconciliation.group
            case .refused(let refusal): throw refusal
            case .absent: return nil
            }
        }
    }

    private func save(_ group: DeviceGroup) async throws(Refusal) -> DeviceGroup {
        var group = group
        group.updatedAt = self.clock.now()
        let changed = group
        defer { self.known.changed(changed) }
        group.version = try await Self.refusing { () throws(GatewayError) in try await self.store.save(changed) }
        return group
    }

    private func forget(_ group: DeviceGroup) async throws(Refusal) {
        defer { self.known.changed(group) }
        try await Self.refusing { () throws(GatewayError) in try await self.store.remove(group) }
    }

    private static func refusing<Value: Sendable>(
        _ body: () async throws(GatewayError) -> Value
    ) async throws(Refusal) -> Value {
        do {
            return try await body()
        } catch {
            throw error.code == .conflict ? Refusal.groupConflict : Refusal(error)
        }
    }

    // MARK: Around a change

    private func changing<Answer: Sendable>(
        _ name: String,
        _ action: AuditAction,
        _ tokens: [String],
        by caller: Caller,
        _ change: (DeviceGroup, _ upstreamCode: inout String?) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        try await self.recording(action, name, tokens, by: caller) { record throws(Refusal) in
            try await self.locked(name, by: caller) { () throws(Refusal) in
                try await change(try await self.known(name, of: caller.profile), &record.upstreamCode)
            }
        }
    }

    /// Charges, records and counts what is done; nothing is done that can't be recorded.
    ///
    /// The name is the group's, or its key where a caller named no more; `nil` for a list of names.
    private func recording<Answer: Sendable>(
        _ action: AuditAction,
        _ name: String?,
        _ tokens: [String],
        by caller: Caller,
        _ body: (inout AuditRecord) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let now = self.clock.now()
        // A list of names asks nothing of FCM.
        let isFree = action == .deviceGroupList
        var code: String?
        let result: Result<Answer, Refusal>
        do throws(Refusal) {
            let draft = AuditRecord.group(action, name, tokens: tokens, by: caller, at: now)
            if !isFree, let refused = self.limiter.refusal(of: caller.profile, now: now) {
                var record = draft
                record.reject(refused.refusal.code)
                await self.audit.record(refused: record)
                throw refused.refusal
            }
            let unrecordable = Refusal(.auditUnavailable)
            let answer = try await self.audit.recording(draft, orThrow: unrecordable) { record throws(Refusal) in
                do throws(Refusal) {
                    if !isFree, let refusal = await self.limiter.charge(caller.profile, now: now) { throw refusal }
                    let answer = try await body(&record)
                    code = record.code
                    return answer
                } catch {
                    record.reject(error.code)
                    throw error
                }
            }
            result = .success(answer)
        } catch {
            code = error.code.rawValue
            result = .failure(error)
        }
        self.metrics.count(action, of: caller.profile.id, outcome: code ?? Self.done)
        return try result.get()
    }

    private func locked<Answer: Sendable>(
        _ name: String,
        by caller: Caller,
        _ body: () async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let key = [caller.profile.id.text, name]
        guard await self.locks.acquire(key, until: caller.deadline) else { throw .groupConflict }
        defer { self.locks.release(key) }
        guard let leases = self.leases else { return try await body() }
        let tenant = caller.profile.id
        let lease = try await Self.refusing { () throws(GatewayError) in
            try await leases.acquire(name, of: tenant, until: caller.deadline)
        }
        guard let lease else { throw .groupConflict }
        let result: Result<Answer, Refusal> = await withDiscardingTaskGroup { group in
            group.addTask { await leases.renewRegularly(name, of: tenant) }
            defer { group.cancelAll() }
            do throws(Refusal) {
                if lease == .takenOver { try await self.forgetKey(of: name, in: caller.profile) }
            } catch {
                leases.abandon(name, of: tenant)
                return .failure(error)
            }
            do throws(Refusal) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        await leases.release(name, of: tenant)
        return try result.get()
    }

    /// What another replica was at may have made the key another one, or the group none: the next who needs it asks FCM.
    private func forgetKey(of name: String, in profile: TenantProfile) async throws(Refusal) {
        guard var group = try await self.stored(name, of: profile), group.key != nil else { return }
        group.key = nil
        _ = try await self.save(group)
    }
}

// MARK: - In FCM's own words

/// Requests of callers that manage their groups as FCM has it.
extension DeviceGroups {
    /// Hands a request on to FCM, and keeps what the gateway knows of the group in step; throws why it was not handed
    /// on, as `group_too_large` where more than 20 tokens might be members.
    package func forward(_ request: GroupRequest, by caller: Caller) async throws(Refusal) -> GroupResult {
        switch request {
        case .lookUp(let name):
            return try await self.recording(.deviceGroupLookUp, name, [], by: caller) { record throws(Refusal) in
                let known = try await self.stored(name, of: caller.profile)
                let upstreamName = known?.upstreamName ?? caller.profile.upstreamGroupName(name)
                let result = await self.ask(.lookUp(name: upstreamName), by: caller)
                record.note(result)
                if case .success(let key) = result.answer { await self.note(key: key, of: name, by: caller) }
                return result
            }
        case .change(let change):
            let name = try await self.name(of: change, caller)
            let label = name ?? change.key ?? ""
            let action = AuditAction(change.operation)
            return try await self.recording(action, label, change.tokens, by: caller) { record throws(Refusal) in
                let result: GroupResult
                if let name {
                    result = try await self.locked(name, by: caller) { () throws(Refusal) in
                        try await self.forward(change, of: name, by: caller)
                    }
                } else {
                    result = await self.ask(.change(change), by: caller)
                }
                record.note(result)
                return result
            }
        }
    }

    /// Notes a key that FCM handed out, so that limits know the group by it.
    ///
    /// A store in trouble, or another change of the group under way, does not keep the caller from the key.
    private func note(key: String, of name: String, by caller: Caller) async {
        try? await self.locked(name, by: caller) { () throws(Refusal) in
            var group = try await self.known(name, of: caller.profile)
            guard group.key != key else { return }
            group.key = key
            _ = try await self.save(group)
        }
    }

    /// Makes a change of a group whose name is known: the intent is written down before, what came of it afterwards.
    private func forward(
        _ change: GroupChange,
        of name: String,
        by caller: Caller
    ) async throws(Refusal) -> GroupResult {
        let before = try await self.known(name, of: caller.profile)
        var (request, group) = (change, before)
        if change.name != nil { request.name = group.upstreamName }
        guard before.isStored || change.operation != .remove else {
            // Nothing is known of the group, and of less there is nothing to write down.
            return await self.ask(.change(request), of: name, by: caller)
        }
        switch change.operation {
        case .create:
            // FCM makes a group only where there is none, so that of the former members only the uncertain ones count.
            try Self.checkCount(change.tokens, with: group.members.filter { $0.standing != .member })
            group.begin(.create, change.tokens)
        case .add:
            try Self.checkCount(change.tokens, with: group.members)
            group.begin(.add, change.tokens)
        case .remove:
            // Other tokens are no more members than before, whatever FCM answers.
            group.begin(.remove, change.tokens.filter(group.members.map(\.token).containsToken))
        }
        group = try await self.save(group)
        let result = await self.ask(.change(request), of: name, by: caller)
        // What FCM said is the answer, even where it can't be written down: by the intent the next change settles it.
        try? await self.note(result, of: change, before, &group)
        return result
    }

    private func note(
        _ result: GroupResult,
        of change: GroupChange,
        _ before: DeviceGroup,
        _ group: inout DeviceGroup
    ) async throws(Refusal) {
        switch result.answer {
        case .success(let key):
            if change.operation == .create { (group.members, group.isComplete) = ([], true) }
            group.finish(change.operation, change.tokens, key: key)
            if group.members.isEmpty, group.isComplete {
                try await self.forget(group)
            } else {
                _ = try await self.save(group)
            }
        case .failure(let failure) where failure.isDefinite:
            var before = before
            if failure.kind == .noValidTokens {
                let uncertain = before.members.filter { $0.standing != .member }.map(\.token)
                before.drop(uncertain.filter(change.tokens.containsToken))
            }
            try await self.restore(before, over: group)
        case .failure:
            break
        }
    }

    private func restore(_ before: DeviceGroup, over group: DeviceGroup) async throws(Refusal) {
        guard before.isStored else { return try await self.forget(group) }
        var restored = before
        restored.version = group.version
        _ = try await self.save(restored)
    }

    /// Asks FCM; what is asked under a group's lease ends before that does.
    private func ask(_ request: GroupRequest, of name: String? = nil, by caller: Caller) async -> GroupResult {
        var deadline = caller.deadline
        if let name, let end = self.leases?.end(of: name, of: caller.profile.id) { deadline = min(deadline, end) }
        return await self.upstream.perform(request, of: caller.profile, deadline: deadline, origin: caller.origin)
    }

    /// The tenant's name of the group that a change is for; `nil` where only FCM can tell.
    private func name(of change: GroupChange, _ caller: Caller) async throws(Refusal) -> String? {
        if let name = change.name { return name }
        guard let key = change.key else { return nil }
        let profile = caller.profile
        let groups = try await Self.refusing { () throws(GatewayError) in
            try await self.store.groups(withKeys: [key], of: profile.id)
        }
        return groups.first??.name
    }
}

// MARK: - Sends

extension DeviceGroups {
    /// Reads by which keys groups are known; call it before serving.
    package func load() async throws(GatewayError) {
        try await self.known.load()
    }

    /// Learns the keys of groups that other replicas change; a send asks no store whether it knows more.
    ///
    /// Until a key is known here, a send to it counts as one to a device. A store that fails is asked again with the next
    /// poll, and is told of elsewhere.
    package func run() async throws {
        while !Task.isShuttingDownGracefully,
            (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.pollInterval) }) != nil
        {
            try? await self.load()
        }
    }

    /// The group that a send names, as it was looked up for the send's limits; where no key of it is known, FCM is asked
    /// for one. The group has a key; `nil` where FCM has no such group.
    func recipient(_ name: String, by caller: Caller) async throws(Refusal) -> KnownGroup? {
        if let known = self.known.group(named: name, of: caller.profile) { return known }
        return try await self.lookUp(name, by: caller).map { KnownGroup($0, of: caller.profile) }
    }
}

extension Refusal {
    static let groupNotFound = Refusal(.notFound, "The tenant has no device group of this name")
    static let groupConflict = Refusal(.groupConflict)

    /// What FCM refused, or did not answer, or could not be asked.
    init(_ failure: GroupFailure) {
        let detail: String? =
            switch failure.kind {
            case .invalidField: "FCM does not take this group or these tokens"
            case .upstreamCredentials: failure.text
            case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .upstreamInternal,
                .upstreamUnavailable, .upstreamProtocol:
                nil
            }
        self.init(failure.outcomeCode, detail, retryAfter: failure.isRetryable ? failure.retryAfter : nil)
    }
}

// MARK: - Records

extension AuditRecord {
    /// The record of something done to a device group, or of a list of their names.
    static func group(
        _ action: AuditAction,
        _ name: String?,
        tokens: [String],
        by caller: Caller,
        at time: Timestamp
    ) -> AuditRecord {
        var record = AuditRecord(action, by: caller.principal, caller.origin, at: time)
        record.targetKind = TargetKind.group.rawValue
        record.append([name].compactMap(\.self) + tokens, of: caller.profile)
        record.recipients = tokens.count
        record.accepted = tokens.count
        return record
    }

    mutating func note(_ result: GroupResult) {
        self.upstreamCode = result.upstreamCode
        if case .failure(let failure) = result.answer { self.reject(failure.outcomeCode) }
    }
}

extension AuditAction {
    fileprivate init(_ operation: GroupOperation) {
        switch operation {
        case .create: self = .deviceGroupPut
        case .add: self = .deviceGroupAdd
        case .remove: self = .deviceGroupRemove
        }
    }
}
