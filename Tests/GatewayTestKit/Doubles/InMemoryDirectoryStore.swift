package import GatewayCore
import Synchronization

/// A directory that lives as long as the test.
package final class InMemoryDirectoryStore: DirectoryStore {
    private struct State {
        var contents = DirectoryContents()
        var secrets: [GatewaySecret: Envelope] = [:]
        var refusesLoads = false
        var refusesChanges = false
    }

    private let state = Mutex(State())
    private let willApply: @Sendable (DirectoryChange) -> Void

    /// An empty directory.
    ///
    /// - Parameter willApply: hears of every change before it is made or refused.
    package init(willApply: @escaping @Sendable (DirectoryChange) -> Void = { _ in }) {
        self.willApply = willApply
    }

    /// What the directory holds at this moment.
    package var contents: DirectoryContents {
        self.state.withLock { $0.contents }
    }

    /// Makes reading fail from now on, or succeed again.
    package func refuseLoads(_ refuses: Bool = true) {
        self.state.withLock { $0.refusesLoads = refuses }
    }

    /// Makes changes fail from now on, or succeed again.
    package func refuseChanges(_ refuses: Bool = true) {
        self.state.withLock { $0.refusesChanges = refuses }
    }

    /// Everything.
    ///
    /// - Throws: `storeUnavailable` while told to refuse.
    package func load() async throws(GatewayError) -> DirectoryContents {
        // As with a database, a reader that is cancelled gets nothing.
        if Task.isCancelled { throw GatewayError(.cancelled, "The reader was cancelled") }
        let state = self.state.withLock { $0 }
        guard !state.refusesLoads else { throw Self.unavailable }
        return state.contents
    }

    /// Makes one change.
    ///
    /// - Throws: `storeUnavailable` while told to refuse; `notFound` where a tenant or key is not there.
    package func apply(_ change: DirectoryChange) async throws(GatewayError) {
        self.willApply(change)
        let failure = self.state.withLock { state -> GatewayError? in
            if state.refusesChanges { return Self.unavailable }
            return Self.apply(change, to: &state.contents)
        }
        if let failure { throw failure }
    }

    /// The gateway's own secrets, kept from the first call on.
    ///
    /// - Throws: `storeUnavailable` while told to refuse changes.
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
        case .putTenant(let tenant, let salt):
            contents.tenants.removeAll { $0.id == tenant.id }
            contents.tenants.append(tenant)
            contents.salts[tenant.id] = contents.salts[tenant.id] ?? salt
        case .deleteTenant(let tenant):
            guard isKnown(tenant) else { return missing }
            contents.tenants.removeAll { $0.id == tenant }
            contents.credentials.removeAll { $0.tenant == tenant }
            contents.keys.removeAll { $0.tenant == tenant }
            contents.salts[tenant] = nil
            contents.limits[tenant] = nil
        case .putCredential(let credential):
            guard isKnown(credential.tenant) else { return missing }
            contents.credentials.removeAll { $0.tenant == credential.tenant && $0.kind == credential.kind }
            contents.credentials.append(credential)
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
