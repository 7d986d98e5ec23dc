import FCMModel

/// A device group that one request holds.
///
/// Two writers of one group follow each other: within a process by the group's lock, across replicas by its lease
/// (``GroupLease``). A call to FCM ends before the lease does. A store takes a change only from the lease's owner.
struct HeldGroup {
    /// As the store has it, or without anything known.
    private(set) var group: DeviceGroup
    /// FCM's last answer, for the audit.
    private(set) var upstreamCode: String?
    private let caller: Caller
    private let groups: DeviceGroups
    private let lease: GroupLease?

    /// Reads a group that the caller has begun to hold.
    ///
    /// A lease that was taken over from another replica makes the group's key doubtful: that replica may have changed the
    /// key, or deleted the group. The key is forgotten, so that the next use of it asks FCM.
    init(
        _ name: String,
        by caller: Caller,
        in groups: DeviceGroups,
        under lease: GroupLease? = nil
    ) async throws(Refusal) {
        let profile = caller.profile
        (self.caller, self.groups, self.lease) = (caller, groups, lease)
        self.group =
            try await groups.stored(name, of: profile)
            ?? DeviceGroup(
                tenant: profile.id,
                tenantCreatedAt: profile.tenant.createdAt,
                name: name,
                upstreamName: profile.upstreamGroupName(name),
                updatedAt: groups.clock.now()
            )
        guard let lease, lease.isTakenOver else { return }
        if self.group.key != nil { try await self.save(key: nil) }
        lease.settleTakeover()
    }

    mutating func ask(_ request: GroupRequest) async -> GroupResult {
        let deadline = min(self.caller.deadline, self.lease?.end ?? self.caller.deadline)
        let result = await self.groups.ask(request, by: self.caller, until: deadline)
        self.upstreamCode = result.upstreamCode
        return result
    }

    /// Asks FCM for the group's key; `nil` where FCM has no such group.
    mutating func lookUp() async throws(Refusal) -> DeviceGroup? {
        switch await self.ask(.lookUp(name: self.group.upstreamName)).answer {
        case .success(let key):
            try await self.save(key: key)
            return self.group
        case .failure(let failure):
            guard failure.kind == .groupNotFound else { throw Refusal(failure) }
            return nil
        }
    }

    /// Takes the steps of a reconciliation, and stores the group before each; returns the group at the end, `nil` where
    /// there is none.
    mutating func reconcile(_ reconciliation: GroupReconciliation) async throws(Refusal) -> DeviceGroup? {
        var reconciliation = reconciliation
        while true {
            let step = reconciliation.next()
            if case .absent = step {
                if self.group.isStored { try await self.remove() }
                return nil
            }
            if reconciliation.group.isEmpty {
                // A group that FCM does not have and refuses to create is nothing to remember.
                if self.group.isStored, reconciliation.isAbsent, case .refused = step { try await self.remove() }
            } else if reconciliation.group != self.group {
                try await self.save(reconciliation.group)
                reconciliation.stored(version: self.group.version, at: self.group.updatedAt)
            }
            switch step {
            case .call(let request): reconciliation.received(await self.ask(request), of: request)
            case .settled: return reconciliation.group
            case .refused(let refusal): throw refusal
            case .absent: return nil
            }
        }
    }

    // MARK: Storing

    mutating func save(_ group: DeviceGroup) async throws(Refusal) {
        var changed = group
        changed.updatedAt = self.groups.clock.now()
        defer { self.groups.known.changed(changed) }
        let version = try await refusing(await self.groups.store.save(changed))
        changed.version = version
        self.group = changed
    }

    /// Stores a key of the group, or that none is known.
    mutating func save(key: String?) async throws(Refusal) {
        var group = self.group
        group.key = key
        try await self.save(group)
    }

    func remove() async throws(Refusal) {
        defer { self.groups.known.changed(self.group) }
        try await refusing(await self.groups.store.remove(self.group))
    }
}

/// Calls a store of groups, and throws its error as a refusal.
func refusing<Value: Sendable>(
    _ call: @autoclosure () async throws(GatewayError) -> Value
) async throws(Refusal) -> Value {
    do {
        return try await call()
    } catch {
        throw error.code == .conflict ? Refusal.groupConflict : Refusal(error)
    }
}

extension DeviceGroup {
    /// Throws `group_too_large` if a group of these tokens, and of these members, would have more than 20.
    static func checkCount(_ tokens: [String], with members: [Member] = []) throws(Refusal) {
        let count = tokens.count + members.count { !tokens.containsToken($0.token) }
        guard count <= GroupChange.maxTokens else {
            let detail = "The group would have \(count) members; it may have \(GroupChange.maxTokens)"
            throw Refusal(.groupTooLarge, detail)
        }
    }
}

extension Refusal {
    static let groupNotFound = Refusal(.notFound, "The tenant has no device group of this name")
    static let groupConflict = Refusal(.groupConflict)

    /// A refusal of FCM's, or a call that got no answer or could not be made.
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
