package import FCMModel

/// Requests in FCM's own words, for callers that manage their groups as FCM has it.
extension DeviceGroups {
    /// Hands a request on to FCM, and keeps what the gateway knows of the group in step.
    ///
    /// - Returns: FCM's answer.
    /// - Throws: why it was not handed on.
    package func forward(_ request: GroupRequest, by caller: GroupCaller) async throws(Refusal) -> GroupResult {
        switch request {
        case .lookUp(let name):
            return try await self.recording(name, .lookUp, [], by: caller) { trace throws(Refusal) in
                let upstreamName = try await self.upstreamName(name, caller)
                let request = GroupRequest.lookUp(name: upstreamName)
                let result = await self.ask(request, by: caller)
                trace.note(result)
                if case .success(let key) = result.answer { await self.note(key: key, of: name, by: caller) }
                return result
            }
        case .change(let change):
            let name = try await self.name(of: change, caller)
            let label = name ?? change.key ?? ""
            return try await self.recording(label, .init(change.operation), change.tokens, by: caller) {
                trace
                    throws(Refusal) in
                guard let name else { return await self.perform(change, by: caller, trace) }
                return try await self.inTurn(name, of: caller.profile, until: caller.deadline) {
                    () throws(Refusal) in
                    try await self.forward(change, of: name, by: caller, trace)
                }
            }
        }
    }

    /// Notes a key that FCM handed out, so that limits know the group by it.
    ///
    /// A store in trouble, or another change of the group under way, does not keep the caller from the key.
    private func note(key: String, of name: String, by caller: GroupCaller) async {
        try? await self.inTurn(name, of: caller.profile, until: caller.deadline) { () throws(Refusal) in
            var group = try await self.stored(name, of: caller.profile) ?? self.unknown(name, of: caller.profile)
            guard group.key != key else { return }
            group.key = key
            _ = try await self.save(group)
        }
    }

    /// Makes a change of a group whose name is known: the intent is written down before, what came of it afterwards.
    private func forward(
        _ change: GroupChange,
        of name: String,
        by caller: GroupCaller,
        _ trace: GroupTrace
    ) async throws(Refusal) -> GroupResult {
        let known = try await self.stored(name, of: caller.profile)
        var request = change
        var group = known ?? self.unknown(name, of: caller.profile)
        if change.name != nil { request.name = group.upstreamName }
        guard known != nil || change.operation != .remove else {
            // Nothing is known of the group, and of less there is nothing to write down.
            return await self.perform(request, by: caller, trace)
        }
        let before = group
        group.begin(change.operation, change.tokens)
        group = try await self.save(group)
        let result = await self.perform(request, by: caller, trace)
        // What FCM said is the answer, even where it can't be written down: the intent that is has the next change settle it.
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

    private func perform(_ change: GroupChange, by caller: GroupCaller, _ trace: GroupTrace) async -> GroupResult {
        let result = await self.ask(.change(change), by: caller)
        trace.note(result)
        return result
    }

    /// Has FCM asked what a caller wants.
    func ask(_ request: GroupRequest, by caller: GroupCaller) async -> GroupResult {
        await self.upstream.perform(
            request,
            of: caller.profile,
            deadline: caller.deadline,
            origin: caller.origin
        )
    }

    /// The tenant's name of the group that a change is for; `nil` where only FCM can tell.
    private func name(of change: GroupChange, _ caller: GroupCaller) async throws(Refusal) -> String? {
        if let name = change.name { return name }
        guard let key = change.key else { return nil }
        do {
            return try await self.store.group(withKey: key, of: caller.profile.id)?.name
        } catch {
            throw Refusal(ofGroups: error)
        }
    }

    private func upstreamName(_ name: String, _ caller: GroupCaller) async throws(Refusal) -> String {
        try await self.stored(name, of: caller.profile)?.upstreamName ?? caller.profile.upstreamGroupName(name)
    }

    /// A group of which nothing is known yet.
    func unknown(_ name: String, of profile: TenantProfile) -> DeviceGroup {
        DeviceGroup(
            tenant: profile.id,
            tenantCreatedAt: profile.tenant.createdAt,
            name: name,
            upstreamName: profile.upstreamGroupName(name),
            updatedAt: self.clock.now()
        )
    }
}

extension GroupAction {
    /// The action of a change in FCM's own words.
    fileprivate init(_ operation: GroupOperation) {
        switch operation {
        case .create: self = .put
        case .add: self = .add
        case .remove: self = .remove
        }
    }
}

extension GroupTrace {
    /// Notes FCM's answer to a caller that gets it as it came.
    fileprivate func note(_ result: GroupResult) {
        if case .failure(let failure) = result.answer {
            self.note(result.upstreamCode, refusal: failure.outcomeCode)
        } else {
            self.note(result.upstreamCode)
        }
    }
}
