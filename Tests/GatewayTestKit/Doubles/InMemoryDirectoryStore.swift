package import GatewayCore
import Synchronization

/// A directory that lives as long as the test.
package final class InMemoryDirectoryStore: DirectoryStore, GatewaySecretStore {
    private struct State {
        var contents = DirectoryContents()
        var secrets: [GatewaySecret: Envelope] = [:]
        var refusesReads = false
        var refusesChanges = false
        var losesAnswers = false
        var reads = 0
        /// The version of each tenant's latest change.
        var changes: [TenantID: Int64] = [:]

        mutating func noteChange(of tenant: TenantID) {
            self.contents.version.number += 1
            self.changes[tenant] = self.contents.version.number
        }
    }

    private let state = Mutex(State())
    private let willApply: @Sendable (DirectoryChange) -> Void

    /// An empty directory.
    package init(willApply: @escaping @Sendable (DirectoryChange) -> Void = { _ in }) {
        self.willApply = willApply
    }

    package var contents: DirectoryContents { self.state.withLock { $0.contents } }

    package func refuseReads(_ refuses: Bool = true) { self.state.withLock { $0.refusesReads = refuses } }

    package func refuseChanges(_ refuses: Bool = true) { self.state.withLock { $0.refusesChanges = refuses } }

    /// Makes changes fail from now on, nobody knowing that they are made, or succeed again.
    package func loseAnswers(_ loses: Bool = true) { self.state.withLock { $0.losesAnswers = loses } }

    /// Becomes another store, elsewhere.
    package func failOver(to contents: DirectoryContents, at origin: String) {
        self.state.withLock { state in
            (state.contents, state.changes) = (contents, [:])
            state.contents.version = DirectoryVersion(contents.version.number, in: origin)
        }
    }

    /// Has a tenant be one that this version can't read.
    package func makeUnreadable(_ tenant: TenantID) {
        self.state.withLock { state in
            state.contents.tenants.removeAll { $0.id == tenant }
            state.contents.refused.append(RefusedRow(.tenant, tenant.text, of: tenant))
            state.noteChange(of: tenant)
        }
    }

    /// Refuses these rows and no others, as a change of their tenants.
    package func refuseRows(_ rows: [RefusedRow]) {
        self.state.withLock { state in
            let tenants = (state.contents.refused + rows).compactMap(\.tenant)
            state.contents.refused = rows
            for tenant in Set(tenants) { state.noteChange(of: tenant) }
        }
    }

    /// How often it was read, failures included.
    package var reads: Int { self.state.withLock { $0.reads } }

    package func load() async throws(GatewayError) -> DirectoryContents {
        try self.read().contents
    }

    /// Notes a reading.
    private func read() throws(GatewayError) -> State {
        // As with a database, a reader that is cancelled gets nothing.
        if Task.isCancelled { throw GatewayError(.cancelled, "The reader was cancelled") }
        let state = self.state.withLock { state in
            state.reads += 1
            return state
        }
        guard !state.refusesReads else { throw Self.unavailable }
        return state
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
                guard isCurrent, state.contents.version.origin == version.origin else { return .success(nil) }
            }
            if let failure = Self.apply(change, to: &state.contents) { return .failure(failure) }
            state.noteChange(of: change.tenant)
            if state.losesAnswers {
                return .failure(GatewayError(.storeUnavailable, "The answer is lost", cause: CommitOutcomeUnknown()))
            }
            return .success(state.contents.of([change.tenant]))
        }
        return try result.get()
    }

    package func changes(since seen: DirectoryVersion) async throws(GatewayError) -> DirectoryNews {
        let state = try self.read()
        let version = state.contents.version
        guard version.number >= seen.number, version.origin == seen.origin else { return .all(state.contents) }
        guard version.number > seen.number else { return .none }
        let changed = Set(state.changes.filter { $0.value > seen.number }.keys)
        return .tenants(changed, state.contents.of(changed))
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
