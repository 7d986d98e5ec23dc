package import FCMModel

/// Requests in FCM's own words: forwarded as they are, while the gateway's knowledge of the group follows FCM's answer.
extension DeviceGroups {
    /// Forwards a request and returns FCM's answer. Throws if the request was not forwarded, such as `group_too_large`
    /// if more than 20 tokens might be members.
    package func forward(_ request: GroupRequest, by caller: Caller) async throws(Refusal) -> GroupResult {
        switch request {
        case .lookUp(let name): try await self.forward(lookUpOf: name, by: caller)
        case .change(let change): try await self.forward(change, by: caller)
        }
    }

    private func forward(lookUpOf name: String, by caller: Caller) async throws(Refusal) -> GroupResult {
        try await self.recording(.deviceGroupLookUp, name, [], by: caller) { record throws(Refusal) in
            let stored = try await self.stored(name, of: caller.profile)
            let upstreamName = stored?.upstreamName ?? caller.profile.upstreamGroupName(name)
            let result = await self.ask(.lookUp(name: upstreamName), by: caller, until: caller.deadline)
            record.note(result)
            if case .success(let key) = result.answer { await self.note(key: key, of: name, by: caller) }
            return result
        }
    }

    /// Stores a key that FCM returned, so that limits know the group by it.
    ///
    /// A failing store, or another change of the group under way, does not withhold the key from the caller.
    private func note(key: String, of name: String, by caller: Caller) async {
        try? await self.holding(name, by: caller) { held throws(Refusal) in
            if held.group.key != key { try await held.save(key: key) }
        }
    }

    private func forward(_ change: GroupChange, by caller: Caller) async throws(Refusal) -> GroupResult {
        let name = try await self.name(of: change, caller.profile)
        let action = AuditRecord.Action(change.operation)
        return try await self.recording(action, name ?? change.key, change.tokens, by: caller) {
            record throws(Refusal) in
            let result: GroupResult
            if let name {
                result = try await self.holding(name, by: caller) { held throws(Refusal) in
                    try await held.forward(change)
                }
            } else {
                result = await self.ask(.change(change), by: caller, until: caller.deadline)
            }
            record.note(result)
            return result
        }
    }

    /// The tenant's name of the group that a change is for; `nil` where only FCM knows it.
    private func name(of change: GroupChange, _ profile: TenantProfile) async throws(Refusal) -> String? {
        if let name = change.name { return name }
        guard let key = change.key else { return nil }
        return try await refusing(await self.store.groups(withKeys: [key], of: profile.id)).first??.name
    }
}

extension HeldGroup {
    /// Forwards a change: the intent is stored before, the result afterwards.
    fileprivate mutating func forward(_ change: GroupChange) async throws(Refusal) -> GroupResult {
        let before = self.group
        var (request, intent) = (change, before)
        if change.name != nil { request.name = before.upstreamName }
        switch change.operation {
        case .create:
            // FCM creates a group only where there is none, so that of the former members only the uncertain ones
            // count.
            try DeviceGroup.checkCount(change.tokens, with: before.members.filter { $0.standing != .member })
            intent.begin(.create, change.tokens)
        case .add:
            try DeviceGroup.checkCount(change.tokens, with: before.members)
            intent.begin(.add, change.tokens)
        case .remove:
            // A removal from a group that the gateway does not know leaves nothing to store.
            guard before.isStored else { return await self.ask(.change(request)) }
            // Other tokens are no more members than before, whatever FCM answers.
            intent.begin(.remove, change.tokens.filter(before.members.map(\.token).containsToken))
        }
        try await self.save(intent)
        let result = await self.ask(.change(request))
        // FCM's answer counts, even if it can't be stored: by the intent, the next change settles it.
        try? await self.settle(change, result, before)
        return result
    }

    private mutating func settle(
        _ change: GroupChange,
        _ result: GroupResult,
        _ before: DeviceGroup
    ) async throws(Refusal) {
        switch result.answer {
        case .success(let key):
            var group = self.group
            if change.operation == .create { (group.members, group.isComplete) = ([], true) }
            group.finish(change.operation, change.tokens, key: key)
            if group.members.isEmpty, group.isComplete { try await self.remove() } else { try await self.save(group) }
        case .failure(let failure) where failure.isDefinite:
            guard before.isStored else { return try await self.remove() }
            var restored = before
            if failure.kind == .noValidTokens {
                let uncertain = before.members.filter { $0.standing != .member }.map(\.token)
                restored.drop(uncertain.filter(change.tokens.containsToken))
            }
            restored.version = self.group.version
            try await self.save(restored)
        case .failure:
            break
        }
    }
}

extension AuditRecord {
    mutating func note(_ result: GroupResult) {
        self.upstreamCode = result.upstreamCode
        if case .failure(let failure) = result.answer { self.reject(failure.outcomeCode) }
    }
}

extension AuditRecord.Action {
    fileprivate init(_ operation: GroupChange.Operation) {
        switch operation {
        case .create: self = .deviceGroupPut
        case .add: self = .deviceGroupAdd
        case .remove: self = .deviceGroupRemove
        }
    }
}
