package import FCMModel

/// Manages tenants' device groups at FCM, and keeps the gateway's knowledge of them in step.
///
/// A change of a group is stored before FCM is asked and after FCM has answered, so that the next request can finish
/// what a crash interrupted. Each change holds its group (``HeldGroup``). ``KnownGroups`` has the groups as sends see
/// them.
package final class DeviceGroups: Sendable {
    /// The most tokens of a group that are stored with those that FCM is asked to remove on a caller's word alone: a
    /// removal that FCM does not answer stays open.
    private static let maxOpenTokens = 2 * GroupChange.maxTokens
    /// The outcome, in metrics, of a request that was carried out.
    private static let done = "done"

    let store: any GroupStore
    let clock: any WallClock
    let metrics: TenantCounters
    package let known: KnownGroups
    private let upstream: any GroupUpstream
    private let limiter: any RateLimiter
    private let audit: AuditLog
    private let locks = KeyedLock<[String]>()
    private let leases: GroupLeases?

    /// - Parameters:
    ///   - leases: `nil` for a process that has its store to itself.
    ///   - lookUpTimeout: the longest that a send waits for the store's answer about its groups.
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
        uptime: @escaping @Sendable () -> Uptime = { .now },
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
            startingWith: AuditRecord.Action.allCases.filter { $0.scope == .manageDeviceGroups }.map(\.rawValue),
            Self.done
        )
    }

    // MARK: Changes

    /// Makes a group hold exactly 1 to 20 different tokens; FCM creates a group that it does not have. `isNew` is true
    /// if the gateway did not know the group before.
    ///
    /// Throws `group_too_large`, `group_conflict`, `no_valid_tokens`, or a failure of FCM or the store, as all changes
    /// do.
    package func put(
        _ name: String,
        tokens: [String],
        by caller: Caller
    ) async throws(Refusal) -> (DeviceGroup, isNew: Bool) {
        try await self.changing(name, .deviceGroupPut, tokens, by: caller) { held throws(Refusal) in
            try DeviceGroup.checkCount(tokens)
            let isNew = !held.group.isStored
            let reconciliation = GroupReconciliation(held.group, toward: tokens, verifies: true)
            return (try await held.reconcile(reconciliation) ?? held.group, isNew)
        }
    }

    /// Throws `not_found` where there is no group.
    package func add(_ tokens: [String], to name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup {
        try await self.changing(name, .deviceGroupAdd, tokens, by: caller) { held throws(Refusal) in
            let group = held.group
            let wanted = group.tokens + tokens.filter { !group.tokens.containsToken($0) }
            try DeviceGroup.checkCount(wanted)
            let reconciliation = GroupReconciliation(group, toward: wanted, mustExist: !group.isStored)
            guard let result = try await held.reconcile(reconciliation) else { throw .groupNotFound }
            return result
        }
    }

    /// Returns `nil` if the group is gone: FCM deletes it with its last member. Throws `not_found` where there was
    /// none.
    package func remove(
        _ tokens: [String],
        from name: String,
        by caller: Caller
    ) async throws(Refusal) -> DeviceGroup? {
        try await self.changing(name, .deviceGroupRemove, tokens, by: caller) { held throws(Refusal) in
            if !held.group.isStored, try await held.lookUp() == nil { throw .groupNotFound }
            let group = held.group
            let others = tokens.filter { !group.members.map(\.token).containsToken($0) }
            guard others.isEmpty || group.members.count + others.count <= Self.maxOpenTokens else {
                throw Refusal(.groupConflict, "Too many removals are open; repeat those, or declare the members")
            }
            let reconciliation = GroupReconciliation(
                group,
                toward: group.tokens.filter { !tokens.containsToken($0) },
                removing: tokens,
                mayRemain: true
            )
            return try await held.reconcile(reconciliation)
        }
    }

    /// Removes every member, so that FCM deletes the group. Throws `not_found` for a group that neither the gateway nor
    /// FCM knows, `conflict` for one with members that the gateway does not know.
    package func delete(_ name: String, by caller: Caller) async throws(Refusal) {
        try await self.changing(name, .deviceGroupDelete, [], by: caller) { held throws(Refusal) in
            let wasStored = held.group.isStored
            let result = try await held.reconcile(GroupReconciliation(held.group, toward: []))
            if result == nil, !wasStored { throw .groupNotFound }
        }
    }

    private func changing<Answer: Sendable>(
        _ name: String,
        _ action: AuditRecord.Action,
        _ tokens: [String],
        by caller: Caller,
        _ change: (inout HeldGroup) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        try await self.recording(action, name, tokens, by: caller) { record throws(Refusal) in
            try await self.holding(name, by: caller) { held throws(Refusal) in
                defer { record.upstreamCode = held.upstreamCode }
                return try await change(&held)
            }
        }
    }

    // MARK: Look-ups

    /// Shows a group and records that; `nil` where neither the gateway nor FCM knows it. The group has a key.
    package func show(_ name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup? {
        try await self.recording(.deviceGroupGet, name, [], by: caller) { _ throws(Refusal) in
            if let stored = try await self.stored(name, of: caller.profile), stored.key != nil { return stored }
            return try await self.lookUp(name, by: caller)
        }
    }

    package func names(after name: String?, limit: Int, by caller: Caller) async throws(Refusal) -> [String] {
        try await self.recording(.deviceGroupList, nil, [], by: caller) { _ throws(Refusal) in
            try await refusing(await self.store.names(of: caller.profile.id, after: name, limit: limit))
        }
    }

    /// A group as the gateway stored it; FCM is not asked.
    package func stored(_ name: String, of profile: TenantProfile) async throws(Refusal) -> DeviceGroup? {
        let group = try await refusing(await self.store.group(named: name, of: profile.id))
        // A tenant that was made anew has groups of its own.
        return group?.tenantCreatedAt == profile.tenant.createdAt ? group : nil
    }

    /// A group with a key, for which FCM is asked if the store has none; `nil` where FCM has no such group.
    private func lookUp(_ name: String, by caller: Caller) async throws(Refusal) -> DeviceGroup? {
        try await self.holding(name, by: caller) { held throws(Refusal) in
            try await held.group.key == nil ? held.lookUp() : held.group
        }
    }

    // MARK: Sends

    /// The group that a send names, as it was looked up for the send's limits. FCM is asked for a key if none is known;
    /// `nil` where FCM has no such group.
    func recipient(_ name: String, by caller: Caller) async throws(Refusal) -> KnownGroup? {
        if let known = self.known.group(named: name, of: caller.profile) { return known }
        return try await self.lookUp(name, by: caller).map { KnownGroup($0, of: caller.profile) }
    }

    /// Forgets a key that FCM no longer takes, so that the next user of the group asks for another.
    ///
    /// A failure does no harm: a change of the group that is under way meets the same answer of FCM's.
    func forget(key: String, of name: String, by caller: Caller) async {
        self.known.drop(name, of: caller.profile)
        // The send would wait for it.
        guard !self.known.isStoreFailing else { return }
        try? await self.holding(name, by: caller) { held throws(Refusal) in
            if held.group.key == key { try await held.save(key: nil) }
        }
    }

    // MARK: Around a request

    /// Holds a group while the closure runs: by a lock in this process and, across replicas, by the group's lease.
    func holding<Answer: Sendable>(
        _ name: String,
        by caller: Caller,
        _ body: (inout HeldGroup) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let key = [caller.profile.id.text, name]
        guard await self.locks.acquire(key, until: caller.deadline) else { throw .groupConflict }
        defer { self.locks.release(key) }
        guard let leases = self.leases else {
            var held = try await HeldGroup(name, by: caller, in: self)
            return try await body(&held)
        }
        guard let lease = try await refusing(await leases.acquire(name, of: caller.profile.id, until: caller.deadline))
        else {
            throw .groupConflict
        }
        return try await lease.renewing { () throws(Refusal) in
            var held = try await HeldGroup(name, by: caller, in: self, under: lease)
            return try await body(&held)
        }
    }

    func ask(
        _ request: GroupRequest,
        by caller: Caller,
        until deadline: Uptime
    ) async -> GroupResult {
        await self.upstream.perform(request, of: caller.profile, deadline: deadline, origin: caller.origin)
    }

    /// Charges, records and counts a request; nothing is done that can't be recorded.
    ///
    /// The name is the group's, or its key if the caller named no more; `nil` for a list of names.
    func recording<Answer: Sendable>(
        _ action: AuditRecord.Action,
        _ name: String?,
        _ tokens: [String],
        by caller: Caller,
        _ body: (inout AuditRecord) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let now = self.clock.now()
        // A list of names asks nothing of FCM.
        let limiter = action == .deviceGroupList ? nil : self.limiter
        var draft = AuditRecord.group(action, name, tokens: tokens, by: caller, at: now)
        var outcome = Self.done
        defer { self.metrics.count(action, of: caller.profile.id, outcome: outcome) }
        do throws(Refusal) {
            if let refused = limiter?.refusal(of: caller.profile, now: now) {
                draft.reject(refused.refusal.code)
                await self.audit.record(refused: draft)
                throw refused.refusal
            }
            return try await self.audit.recording(draft, orThrow: Refusal(.auditUnavailable)) {
                record throws(Refusal) in
                do throws(Refusal) {
                    try await limiter?.charge(caller.profile, now: now)
                    let answer = try await body(&record)
                    outcome = record.code ?? Self.done
                    return answer
                } catch {
                    record.reject(error.code)
                    throw error
                }
            }
        } catch {
            outcome = error.code.rawValue
            throw error
        }
    }
}

// MARK: - Records

extension AuditRecord {
    /// The record of something done to a device group, or of a list of their names.
    static func group(
        _ action: AuditRecord.Action,
        _ name: String?,
        tokens: [String],
        by caller: Caller,
        at time: Timestamp
    ) -> AuditRecord {
        var record = AuditRecord(action, by: caller.principal, caller.origin, at: time)
        record.targetKind = Target.Kind.group.rawValue
        record.append([name].compactMap(\.self) + tokens, of: caller.profile)
        record.recipients = tokens.count
        record.accepted = tokens.count
        return record
    }
}
