package import GatewayCore
import GatewayStorage
import Synchronization

/// Device groups in SQLite, with a log of look-ups and a condition for writes.
package final class TestGroupStore: GroupStore {
    private let database: TestDatabase
    private let store: SQLGroupStore
    private let log = Mutex<[[String]]>([])
    private let mayWrite = Mutex<@Sendable () -> Bool>({ true })

    package init(in database: TestDatabase = .sample()) {
        self.database = database
        self.store = SQLGroupStore(database: database)
    }

    package func refuse(_ refuses: Bool = true) { self.database.refuse(refuses) }

    /// Makes look-ups wait until they are released or their task is cancelled.
    package func hang(_ hangs: Bool = true) { self.database.holdReads(hangs) }

    /// Calls a closure before every write; the write fails if it returns false.
    package func ask(_ mayWrite: @escaping @Sendable () -> Bool) { self.mayWrite.withLock { $0 = mayWrite } }

    /// The name, or the keys, of each look-up of groups so far.
    package var lookUps: [[String]] { self.log.withLock { $0 } }

    /// All groups, by tenant and name.
    package func groups() async throws(GatewayError) -> [DeviceGroup] {
        var groups: [DeviceGroup] = []
        for tenant in try await self.database.directoryStore.load().tenants.map(\.id) {
            for name in try await self.names(of: tenant, after: nil, limit: .max) {
                if let group = try await self.store.group(named: name, of: tenant) { groups.append(group) }
            }
        }
        return groups
    }

    package func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        self.log.withLock { $0.append([name]) }
        return try await self.store.group(named: name, of: tenant)
    }

    package func groups(withKeys keys: [String], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?] {
        self.log.withLock { $0.append(keys) }
        return try await self.store.groups(withKeys: keys, of: tenant)
    }

    package func keys(since bookmark: GroupKeys.Bookmark?) async throws(GatewayError) -> GroupKeys {
        try await self.store.keys(since: bookmark)
    }

    package func save(_ group: DeviceGroup) async throws(GatewayError) -> Int {
        try self.requirePermission()
        return try await self.store.save(group)
    }

    package func remove(_ group: DeviceGroup) async throws(GatewayError) {
        try self.requirePermission()
        try await self.store.remove(group)
    }

    package func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String] {
        try await self.store.names(of: tenant, after: name, limit: limit)
    }

    private func requirePermission() throws(GatewayError) {
        let mayWrite = self.mayWrite.withLock { $0 }
        guard mayWrite() else { throw GatewayError(.storeUnavailable, "The store refuses, as it was told to") }
    }
}
