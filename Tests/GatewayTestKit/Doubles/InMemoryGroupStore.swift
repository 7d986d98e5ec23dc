package import GatewayCore
import Synchronization

/// Device groups that live as long as the test.
package final class InMemoryGroupStore: GroupStore {
    private struct Key: Hashable {
        let tenant: TenantID
        let name: String
    }

    private struct State {
        var groups: [Key: DeviceGroup] = [:]
        /// Names of groups by every key that they ever had.
        var names: [Key: String] = [:]
        var lookUps: [[String]] = []
        var refuses = false
        var willWrite: @Sendable () -> Bool = { true }
    }

    private let state = Mutex(State())
    private let isHung = Observed(false)

    package init() {}

    package func refuse(_ refuses: Bool = true) { self.state.withLock { $0.refuses = refuses } }

    /// Has nobody find a group until this is over, or the task of the look-up is cancelled.
    package func hang(_ hangs: Bool = true) { self.isHung.change { $0 = hangs } }

    /// Asks before every write whether it may be made; a write that may not fails.
    package func ask(_ willWrite: @escaping @Sendable () -> Bool) { self.state.withLock { $0.willWrite = willWrite } }

    package var groups: [DeviceGroup] {
        self.state.withLock { $0.groups.values.sorted { $0.name < $1.name } }
    }

    /// The name, or the keys, of each look-up of groups so far.
    package var lookUps: [[String]] { self.state.withLock { $0.lookUps } }

    package func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        self.state.withLock { $0.lookUps.append([name]) }
        try await self.awaitAnswer()
        return try self.read { $0[Key(tenant: tenant, name: name)] }
    }

    package func groups(withKeys keys: [String], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?] {
        self.state.withLock { $0.lookUps.append(keys) }
        try await self.awaitAnswer()
        let names = self.state.withLock { state in keys.map { state.names[Key(tenant: tenant, name: $0)] } }
        return try self.read { groups in names.map { name in name.flatMap { groups[Key(tenant: tenant, name: $0)] } } }
    }

    package func keys(since bookmark: GroupKeys.Bookmark?) async throws(GatewayError) -> GroupKeys {
        let keys = self.state.withLock { $0.refuses ? nil : $0.names.keys.map { (tenant: $0.tenant, key: $0.name) } }
        guard let keys else { throw Self.unavailable }
        return GroupKeys(keys: keys, bookmark: GroupKeys.Bookmark(epoch: "", horizon: 0))
    }

    package func save(_ group: DeviceGroup) async throws(GatewayError) -> Int {
        try self.write(group) { stored in
            var group = group
            group.version += 1
            stored = group
        }
        return group.version + 1
    }

    package func remove(_ group: DeviceGroup) async throws(GatewayError) { try self.write(group) { $0 = nil } }

    package func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String] {
        let names = try self.read { $0.keys.filter { $0.tenant == tenant }.map(\.name) }
        let rest = names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
            .filter { $0 > (name ?? "") }
        return Array(rest.prefix(limit))
    }

    private func awaitAnswer() async throws(GatewayError) {
        do {
            try await self.isHung.wait { !$0 }
        } catch {
            throw GatewayError(.cancelled, "The look-up was cancelled")
        }
    }

    private func read<Value: Sendable>(_ body: (borrowing [Key: DeviceGroup]) -> Value) throws(GatewayError) -> Value {
        let value = self.state.withLock { $0.refuses ? nil : body($0.groups) }
        guard let value else { throw Self.unavailable }
        return value
    }

    private func write(_ group: DeviceGroup, _ body: (inout DeviceGroup?) -> Void) throws(GatewayError) {
        let (refuses, willWrite) = self.state.withLock { ($0.refuses, $0.willWrite) }
        guard !refuses, willWrite() else { throw Self.unavailable }
        let isMade = self.state.withLock { state in
            let key = Key(tenant: group.tenant, name: group.name)
            guard (state.groups[key]?.version ?? 0) == group.version else { return false }
            body(&state.groups[key])
            if state.groups[key] == nil {
                state.names = state.names.filter { $0.key.tenant != group.tenant || $0.value != group.name }
            } else if let text = group.key {
                state.names[Key(tenant: group.tenant, name: text)] = group.name
            }
            return true
        }
        guard isMade else { throw GatewayError(.conflict, "The device group was changed meanwhile") }
    }

    private static var unavailable: GatewayError {
        GatewayError(.storeUnavailable, "The store refuses, as it was told to")
    }
}
