package import GatewayCore
import Synchronization

/// A directory that lives as long as the test.
package final class InMemoryDirectoryStore: DirectoryStore, GatewaySecretStore {
    private struct State {
        var contents = DirectoryContents()
        var secrets: [GatewaySecret: Envelope] = [:]
        var refusesLoads = false
        var refusesChanges = false
        var losesAnswers = false
        var loads = 0
        /// The version of each tenant's latest change.
        var changes: [TenantID: Int64] = [:]
    }

    private let state = Mutex(State())
    private let willApply: @Sendable (DirectoryChange) -> Void

    /// An empty directory.
    package init(willApply: @escaping @Sendable (DirectoryChange) -> Void = { _ in }) {
        self.willApply = willApply
    }

    package var contents: DirectoryContents { self.state.withLock { $0.contents } }

    package func refuseLoads(_ refuses: Bool = true) { self.state.withLock { $0.refusesLoads = refuses } }

    package func refuseChanges(_ refuses: Bool = true) { self.state.withLock { $0.refusesChanges = refuses } }

    /// Makes changes fail from now on, nobody knowing that they are made, or succeed again.
    package func loseAnswers(_ loses: Bool = true) { self.state.withLock { $0.losesAnswers = loses } }

    /// Becomes another store, elsewhere.
    package func failOver(to contents: DirectoryContents, at origin: String) {
        self.state.withLock { state in
            (state.contents, state.changes) = (contents, [:])
            state.contents.origin = origin
        }
    }

    /// Has a tenant be one that this version can't read.
    package func makeUnreadable(_ tenant: TenantID) {
        self.state.withLock { state in
            state.contents.tenants.removeAll { $0.id == tenant }
            state.contents.refused.append(RefusedRow(.tenant, tenant.text, of: tenant))
            state.contents.version += 1
            state.changes[tenant] = state.contents.version
        }
    }

    package func refuseRows(_ rows: [RefusedRow]) { self.state.withLock { $0.contents.refused = rows } }

    package var loads: Int { self.state.withLock { $0.loads } }

    package func load() async throws(GatewayError) -> DirectoryContents {
        // As with a database, a reader that is cancelled gets nothing.
        if Task.isCancelled { throw GatewayError(.cancelled, "The reader was cancelled") }
        let state = self.state.withLock { state in
            state.loads += 1
            return state
        }
        guard !state.refusesLoads else { throw Self.unavailable }
        return state.contents
    }

    /// Makes a change of whatever there is by now, as another replica does that has seen it.
    package func apply(_ change: DirectoryChange) async throws(GatewayError) {
        _ = try self.make(change)
    }

    package func apply(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion
    ) async throws(GatewayError) -> DirectoryContents? {
        try self.make(change, plannedAt: version)
    }

    private func make(
        _ change: DirectoryChange,
        plannedAt version: DirectoryVersion? = nil
    ) throws(GatewayError) -> DirectoryContents? {
        self.willApply(change)
        let result = self.state.withLock { state -> Result<DirectoryContents?, GatewayError> in
            if state.refusesChanges { return .failure(Self.unavailable) }
            if let version {
                let isCurrent = state.changes[change.tenant] ?? 0 <= version.number
                guard isCurrent, state.contents.origin == version.origin else { return .success(nil) }
            }
            if let failure = Self.apply(change, to: &state.contents) { return .failure(failure) }
            state.contents.version += 1
            state.changes[change.tenant] = state.contents.version
            if state.losesAnswers {
                return .failure(GatewayError(.storeUnavailable, "The answer is lost", cause: CommitOutcomeUnknown()))
            }
            return .success(Self.contents(of: change.tenant, in: state.contents))
        }
        return try result.get()
    }

    package func changes(since version: Int64, in origin: String) async throws(GatewayError) -> DirectoryNews {
        let state = self.state.withLock { $0 }
        guard !state.refusesLoads else { throw Self.unavailable }
        guard state.contents.version >= version, state.contents.origin == origin else { return .all(state.contents) }
        guard state.contents.version > version else { return .none }
        var changed: [TenantID: DirectoryContents] = [:]
        for (tenant, change) in state.changes where change > version {
            changed[tenant] = Self.contents(of: tenant, in: state.contents)
        }
        return .tenants(changed, version: state.contents.version)
    }

    private static func contents(of tenant: TenantID, in all: DirectoryContents) -> DirectoryContents {
        var contents = DirectoryContents()
        contents.version = all.version
        contents.tenants = all.tenants.filter { $0.id == tenant }
        contents.salts[tenant] = all.salts[tenant]
        contents.credentials = all.credentials.filter { $0.tenant == tenant }
        contents.keys = all.keys.filter { $0.tenant == tenant }
        contents.limits[tenant] = all.limits[tenant]
        contents.refused = all.refused.filter { $0.tenant == tenant }
        return contents
    }

    package func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope] {
        let secrets = self.state.withLock { state -> [GatewaySecret: Envelope]? in
            guard !state.refusesChanges else { return nil }
            state.secrets.merge(candidates) { stored, _ in stored }
            return state.secrets
        }
        guard let secrets else { throw Self.unavailable }
        return secrets
    }

    private static func apply(_ change: DirectoryChange, to contents: inout DirectoryContents) -> GatewayError? {
        func isKnown(_ tenant: TenantID) -> Bool { contents.tenants.contains { $0.id == tenant } }
        func put(_ key: APIKeyRecord) {
            contents.keys.removeAll { $0.id == key.id }
            contents.keys.append(key)
        }
        let missing = GatewayError(.notFound, "There is no such tenant or key")
        switch change {
        case .putTenant(var tenant, let salt):
            let existing = contents.tenants.first { $0.id == tenant.id }
            let isShared = contents.tenants.contains { $0.id != tenant.id && $0.senderID == tenant.senderID }
            let isKept = existing?.senderID == tenant.senderID
            tenant.prefixesGroups =
                tenant.senderID != nil && (isKept ? existing?.prefixesGroups ?? false : isShared)
            contents.tenants.removeAll { $0.id == tenant.id }
            contents.tenants.append(tenant)
            contents.salts[tenant.id] = contents.salts[tenant.id] ?? salt
        case .deleteTenant(let tenant):
            guard isKnown(tenant) || contents.refused.contains(where: { $0.tenant == tenant }) else { return missing }
            contents.refused.removeAll { $0.tenant == tenant }
            contents.tenants.removeAll { $0.id == tenant }
            contents.credentials.removeAll { $0.tenant == tenant }
            contents.keys.removeAll { $0.tenant == tenant }
            contents.salts[tenant] = nil
            contents.limits[tenant] = nil
        case .putCredential(let credential):
            guard isKnown(credential.tenant) else { return missing }
            contents.credentials.removeAll { $0.tenant == credential.tenant && $0.kind == credential.kind }
            contents.credentials.append(credential)
        case .deleteCredential(let kind, let tenant):
            let earlier = contents.credentials.count
            contents.credentials.removeAll { $0.tenant == tenant && $0.kind == kind }
            guard contents.credentials.count < earlier else { return missing }
        case .addKey(let key):
            guard isKnown(key.tenant) else { return missing }
            guard !contents.keys.contains(where: { $0.id == key.id }) else {
                return GatewayError(.conflict, "There is a key of this id")
            }
            put(key)
        case .putKey(let key):
            guard isKnown(key.tenant) else { return missing }
            put(key)
        case .rotateKey(let new, let old):
            guard contents.keys.contains(where: { $0.id == old.id }) else { return missing }
            put(old)
            put(new)
        case .removeKey(let id, let tenant):
            contents.keys.removeAll { $0.id == id && $0.tenant == tenant }
            contents.refused.removeAll { $0 == RefusedRow(.key, id, of: tenant) }
        case .putLimits(let tenant, let limits):
            guard isKnown(tenant) else { return missing }
            contents.limits[tenant] = limits
        }
        return nil
    }

    private static var unavailable: GatewayError {
        GatewayError(.storeUnavailable, "The directory refuses, as it was told to")
    }
}
