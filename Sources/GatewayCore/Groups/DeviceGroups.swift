package import FCMModel

/// Tenants' device groups: what the gateway knows of them, kept in step with FCM.
///
/// Whatever FCM is asked to change is written down before and after, so that the next request can finish what a crash
/// broke off. Two writers of one group follow each other; across processes the version of what is stored keeps one from
/// overwriting the other.
package final class DeviceGroups: Sendable {
    let store: any GroupStore
    let upstream: any GroupUpstream
    private let limiter: any RateLimiter
    let audit: AuditLog
    let clock: any WallClock
    let metrics: TenantCounters
    let knownKeys = KnownGroupKeys()
    /// By tenant and name.
    private let queue = TurnQueue<[String]>()

    /// Device groups.
    package init(
        store: any GroupStore,
        upstream: any GroupUpstream,
        limiter: any RateLimiter,
        audit: AuditLog,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.store = store
        self.upstream = upstream
        self.limiter = limiter
        self.audit = audit
        self.clock = clock
        self.metrics = TenantCounters(.deviceGroupRequests, metrics, watching: [])
    }

    // MARK: Changing

    /// Makes a group hold exactly some tokens; one that FCM does not have is made.
    ///
    /// - Parameters:
    ///   - name: the tenant's name for it.
    ///   - tokens: 1 to 20 different ones.
    ///   - caller: whose group.
    /// - Returns: the group, and whether the gateway did not know it before.
    /// - Throws: `group_too_large`, `group_conflict`, `no_valid_tokens`, or what keeps FCM or the store from serving.
    package func put(
        _ name: String,
        tokens: [String],
        by caller: GroupCaller
    ) async throws(Refusal) -> (DeviceGroup, isNew: Bool) {
        try await self.changing(name, .put, tokens, by: caller) { group, trace throws(Refusal) in
            try Self.checkCount(tokens)
            let isNew = !group.isStored
            let reconciliation = GroupReconciliation(group, toward: tokens, verifies: true)
            let result = try await self.reconcile(reconciliation, by: caller, trace)
            return (result ?? group, isNew)
        }
    }

    /// Adds tokens to a group that is there.
    ///
    /// - Returns: the group.
    /// - Throws: `not_found`, and as for ``put(_:tokens:by:)``.
    package func add(
        _ tokens: [String],
        to name: String,
        by caller: GroupCaller
    ) async throws(Refusal) -> DeviceGroup {
        try await self.changing(name, .add, tokens, by: caller) { group, trace throws(Refusal) in
            let wanted = group.tokens + tokens.filter { !group.tokens.containsToken($0) }
            try Self.checkCount(wanted)
            let reconciliation = GroupReconciliation(group, toward: wanted, mustExist: !group.isStored)
            guard let result = try await self.reconcile(reconciliation, by: caller, trace) else { throw .groupNotFound }
            return result
        }
    }

    /// Removes tokens from a group that is there; with its last member FCM deletes it.
    ///
    /// - Returns: the group; `nil` where it is gone.
    /// - Throws: `not_found`, and as for ``put(_:tokens:by:)``.
    package func remove(
        _ tokens: [String],
        from name: String,
        by caller: GroupCaller
    ) async throws(Refusal) -> DeviceGroup? {
        try await self.changing(name, .remove, tokens, by: caller) { group, trace throws(Refusal) in
            let known = group.isStored ? group : try await self.adopted(group, by: caller, trace)
            let reconciliation = GroupReconciliation(
                known,
                toward: known.tokens.filter { !tokens.containsToken($0) },
                removing: tokens,
                mayRemain: true
            )
            return try await self.reconcile(reconciliation, by: caller, trace)
        }
    }

    /// Removes every member, so that FCM deletes the group.
    ///
    /// - Throws: `not_found` for a group that neither the gateway nor FCM knows, `conflict` for one with members that the
    ///   gateway does not know, and as for ``put(_:tokens:by:)``.
    package func delete(_ name: String, by caller: GroupCaller) async throws(Refusal) {
        try await self.changing(name, .delete, [], by: caller) { group, trace throws(Refusal) in
            let result = try await self.reconcile(GroupReconciliation(group, toward: []), by: caller, trace)
            if result == nil, !group.isStored { throw Refusal.groupNotFound }
        }
    }

    /// Asks FCM for a group that is not stored.
    private func adopted(
        _ group: DeviceGroup,
        by caller: GroupCaller,
        _ trace: GroupTrace
    ) async throws(Refusal) -> DeviceGroup {
        guard let found = try await self.lookUp(group, caller.profile, until: caller.deadline, trace) else {
            throw .groupNotFound
        }
        return found
    }

    private static func checkCount(_ tokens: [String]) throws(Refusal) {
        guard tokens.count <= GroupChange.maxTokens else {
            throw Refusal(
                .groupTooLarge,
                "The group would have \(tokens.count) members; it may have \(GroupChange.maxTokens)"
            )
        }
    }

    // MARK: Knowing

    /// A group as the gateway knows it; where it knows no key, FCM is asked for one.
    ///
    /// - Parameters:
    ///   - name: the tenant's name for it.
    ///   - profile: whose group.
    ///   - deadline: when the caller stops waiting.
    ///   - origin: the request behind it.
    /// - Returns: the group, which has a key; `nil` where FCM has no such group.
    /// - Throws: what keeps FCM or the store from serving.
    package func group(
        _ name: String,
        of profile: TenantProfile,
        until deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) async throws(Refusal) -> DeviceGroup? {
        if let known = try await self.stored(name, of: profile), known.key != nil { return known }
        return try await self.inTurn(name, of: profile, until: deadline) { () throws(Refusal) in
            let known = try await self.stored(name, of: profile)
            if let known, known.key != nil { return known }
            let group = known ?? self.unknown(name, of: profile)
            return try await self.lookUp(group, profile, until: deadline, GroupTrace(of: origin))
        }
    }

    /// Shows a group, and records that somebody looked.
    ///
    /// - Parameters:
    ///   - name: the tenant's name for it.
    ///   - caller: who looks.
    /// - Returns: the group; `nil` where neither the gateway nor FCM knows it.
    /// - Throws: as ``group(_:of:until:origin:)``, and `auditUnavailable`.
    package func show(_ name: String, by caller: GroupCaller) async throws(Refusal) -> DeviceGroup? {
        try await self.recording(name, .get, [], by: caller) { _ throws(Refusal) in
            try await self.group(name, of: caller.profile, until: caller.deadline, origin: caller.origin)
        }
    }

    /// A group as the gateway has it written down; FCM is not asked.
    ///
    /// - Throws: `overloaded` when the store does not answer.
    package func stored(_ name: String, of profile: TenantProfile) async throws(Refusal) -> DeviceGroup? {
        do {
            let group = try await self.store.group(named: name, of: profile.id)
            // A tenant that was made anew has groups of its own.
            return group?.tenantCreatedAt == profile.tenant.createdAt ? group : nil
        } catch {
            throw Refusal(ofGroups: error)
        }
    }

    /// Names of a tenant's groups, as ``GroupStore/names(of:after:limit:)`` has them.
    ///
    /// - Throws: `overloaded` when the store does not answer; `auditUnavailable`.
    package func names(
        after name: String?,
        limit: Int,
        by caller: GroupCaller
    ) async throws(Refusal) -> [String] {
        try await self.recording(nil, .list, [], by: caller) { _ throws(Refusal) in
            do throws(GatewayError) {
                return try await self.store.names(of: caller.profile.id, after: name, limit: limit)
            } catch {
                throw Refusal(ofGroups: error)
            }
        }
    }

    /// Forgets a key that FCM no longer takes, so that the next user of the group asks for another.
    ///
    /// Whoever changes the group at this moment finds out as well, so that it does no harm when this has to give up.
    func forget(
        key: String,
        of name: String,
        _ profile: TenantProfile,
        until deadline: ContinuousClock.Instant
    ) async {
        try? await self.inTurn(name, of: profile, until: deadline) { () throws(Refusal) in
            guard var group = try await self.stored(name, of: profile), group.key == key else { return }
            group.key = nil
            group.updatedAt = self.clock.now()
            _ = try? await self.store.save(group)
        }
    }

    private func lookUp(
        _ group: DeviceGroup,
        _ profile: TenantProfile,
        until deadline: ContinuousClock.Instant,
        _ trace: GroupTrace
    ) async throws(Refusal) -> DeviceGroup? {
        var group = group
        let result = await self.upstream.perform(
            .lookUp(name: group.upstreamName),
            of: profile,
            deadline: deadline,
            origin: trace.request
        )
        trace.note(result.upstreamCode)
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

    /// Takes the steps of a reconciliation, each of them written down before it is taken.
    ///
    /// - Returns: the group as it is then; `nil` where there is none.
    private func reconcile(
        _ reconciliation: GroupReconciliation,
        by caller: GroupCaller,
        _ trace: GroupTrace
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
                let result = await self.ask(request, by: caller)
                trace.note(result.upstreamCode)
                reconciliation.received(result, of: request)
            case .settled: return reconciliation.group
            case .refused(let refusal): throw refusal
            case .absent: return nil
            }
        }
    }

    /// Stores a group.
    ///
    /// - Returns: the group with its new version.
    func save(_ group: DeviceGroup) async throws(Refusal) -> DeviceGroup {
        var group = group
        group.updatedAt = self.clock.now()
        do {
            group.version = try await self.store.save(group)
            if let key = group.key { self.knownKeys.insert(key, of: group.tenant) }
        } catch {
            throw Refusal(ofGroups: error)
        }
        return group
    }

    /// Forgets a group that FCM does not have.
    func forget(_ group: DeviceGroup) async throws(Refusal) {
        do {
            try await self.store.remove(group)
        } catch {
            throw Refusal(ofGroups: error)
        }
    }

    // MARK: Around a change

    /// Records, counts and serialises a change of a group.
    private func changing<Answer: Sendable>(
        _ name: String,
        _ action: GroupAction,
        _ tokens: [String],
        by caller: GroupCaller,
        _ change: (DeviceGroup, GroupTrace) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        try await self.recording(name, action, tokens, by: caller) { trace throws(Refusal) in
            try await self.inTurn(name, of: caller.profile, until: caller.deadline) { () throws(Refusal) in
                let known = try await self.stored(name, of: caller.profile)
                return try await change(known ?? self.unknown(name, of: caller.profile), trace)
            }
        }
    }

    /// Records and counts what is done; nothing is done that can't be recorded.
    func recording<Answer: Sendable>(
        _ name: String?,
        _ action: GroupAction,
        _ tokens: [String],
        by caller: GroupCaller,
        _ body: (GroupTrace) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let now = self.clock.now()
        guard let place = self.audit.reserve() else {
            self.metrics.count(action, of: caller.profile.id, outcome: OutcomeCode.auditUnavailable.rawValue)
            throw Refusal(.auditUnavailable)
        }
        if self.audit.isStrict { try await self.announce(action, name, tokens, by: caller, at: now) }
        let trace = GroupTrace(of: caller.origin)
        let result: Result<Answer, Refusal>
        do throws(Refusal) {
            try await self.charge(action, caller.profile, now: now)
            result = .success(try await body(trace))
        } catch {
            result = .failure(error)
        }
        let code: OutcomeCode? = if case .failure(let refusal) = result { refusal.code } else { trace.refusal }
        place.fill(
            .group(
                action,
                name,
                tokens: tokens,
                by: caller,
                refusal: code,
                upstreamCode: trace.upstreamCode,
                at: now
            )
        )
        if self.audit.isStrict { await self.audit.settle() }
        self.metrics.count(action, of: caller.profile.id, outcome: code?.rawValue ?? "done")
        return try result.get()
    }

    /// Charges the tenant for a request; a list of names asks nothing of FCM and is free.
    private func charge(_ action: GroupAction, _ profile: TenantProfile, now: Timestamp) async throws(Refusal) {
        guard action != .list else { return }
        let decision = await self.limiter.admit(LimitRequest(calls: 1, of: profile), now: now)
        guard case .none(let denial) = decision.admission else { return }
        throw Refusal(denial)
    }

    /// Does something while nobody else changes a group.
    func inTurn<Answer: Sendable>(
        _ name: String,
        of profile: TenantProfile,
        until deadline: ContinuousClock.Instant,
        _ body: () async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let key = [profile.id.text, name]
        guard await self.queue.enter(key, until: deadline) else { throw .groupConflict }
        defer { self.queue.leave(key) }
        return try await body()
    }
}

extension Refusal {
    /// There is no such group.
    static let groupNotFound = Refusal(.notFound, "The tenant has no device group of this name")
    /// Somebody else changes the group at the same time.
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

    /// A store of groups that could not be read or written.
    init(ofGroups error: GatewayError) {
        self = error.code == .conflict ? .groupConflict : Refusal(error)
    }
}
