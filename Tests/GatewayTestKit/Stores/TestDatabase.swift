import Dispatch
package import GatewayCore
package import GatewayStorage
import Synchronization

/// A SQLite database that lives as long as the test. Its calls can be refused, held and counted.
///
/// Several views of one file have separate faults, so that one store can fail while others work.
package final class TestDatabase: SQLDatabase {
    /// The calls so far, and the faults of further ones.
    package struct Calls: Sendable {
        /// Transactions that were committed.
        package fileprivate(set) var writes = 0
        /// Calls that wait while reads or writes are held.
        package fileprivate(set) var waiting = 0
        fileprivate var refuses = false
        fileprivate var holdsReads = false
        fileprivate var holdsWrites = false
    }

    package let isShared: Bool
    private let file: File
    private let calls = Observed(Calls())

    /// A database that uses this clock and contains only sample tenants of these names.
    ///
    /// A shared one has an origin, as if other processes served it too.
    package init(clock: any WallClock = ManualClock(), tenants: [String] = [], isShared: Bool = false) {
        self.isShared = isShared
        do {
            self.file = try File(clock: clock, tenants: tenants.map { try Tenant.sample($0) })
        } catch {
            fatalError("No database for a test: \(error)")
        }
    }

    /// Another view of the same file.
    package init(_ other: TestDatabase) {
        (self.file, self.isShared) = (other.file, other.isShared)
    }

    /// A database with the tenants that samples name.
    package static func sample(clock: any WallClock = ManualClock()) -> TestDatabase {
        TestDatabase(clock: clock, tenants: ["acme", "globex", "other"])
    }

    package var directoryStore: any DirectoryStore { SQLDirectoryStore(database: self, sealer: .sample) }
    package var auditStore: any AuditStore & AuditPageReader { SQLAuditStore(database: self) }
    package var consoleSessionStore: any ConsoleSessionStore { SQLConsoleSessionStore(database: self) }
    package var adminTokenStore: any AdminTokenStore { SQLAdminTokenStore(database: self) }
    package var secretStore: any GatewaySecretStore { SQLSecretStore(database: self) }

    /// The batches of a process that has its store to itself.
    package func batchStore(owner: String = "") -> any BatchStore {
        SQLBatchStore(database: self, owner: ReplicaID(text: owner), leases: .unshared)
    }

    package var writes: Int { self.calls.current.writes }

    /// Makes calls fail from now on, or succeed again.
    package func refuse(_ refuses: Bool = true) { self.calls.change { $0.refuses = refuses } }

    /// Makes reads wait until they are released or their task is cancelled.
    package func holdReads(_ isHeld: Bool = true) { self.calls.change { $0.holdsReads = isHeld } }

    /// Makes writes wait until they are released.
    package func holdWrites(_ isHeld: Bool = true) { self.calls.change { $0.holdsWrites = isHeld } }

    package func wait(until isMet: @escaping @Sendable (Calls) -> Bool) async throws {
        try await self.calls.wait(until: isMet)
    }

    /// Runs any SQL statement.
    package func execute(_ sql: String) async throws {
        try await self.write(scope: .gateway, isolation: .serializable) { _ = try $0.executeMany(sql, [[]]) }
    }

    /// The records of the audit, by writer and place.
    package func auditRecords() async throws(GatewayError) -> [AuditRecord] {
        let store = SQLAuditStore(database: self)
        var records: [AuditRecord] = []
        for writer in try await store.writersWithRecords() {
            records += try await store.rows(of: writer, from: 1, limit: .max).rows.map(\.record)
        }
        return records
    }

    // MARK: SQLDatabase

    package func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        guard await self.awaitTurn({ $0.holdsReads }) else { throw GatewayError(.cancelled, "The read was cancelled") }
        try self.requireAcceptance()
        try await self.file.addTenants()
        return try await self.file.database.read(load, scope: scope, body)
    }

    package func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        _ = await self.awaitTurn { $0.holdsWrites }
        try self.requireAcceptance()
        try await self.file.addTenants()
        let result = try await self.file.database.write(scope: scope, isolation: isolation, body)
        self.calls.change { $0.writes += 1 }
        return result
    }

    package func isLeader() async throws(GatewayError) -> Bool { try await self.file.database.isLeader() }

    package func resignLead() async { await self.file.database.resignLead() }

    package func whenNotified(_ observer: @escaping @Sendable () -> Void) { self.file.database.whenNotified(observer) }

    package func eraseDeleted() async { await self.file.database.eraseDeleted() }

    /// Returns false if the task was cancelled while it waited.
    private func awaitTurn(_ isHeld: @escaping @Sendable (Calls) -> Bool) async -> Bool {
        let waits = self.calls.change { calls in
            if isHeld(calls) { calls.waiting += 1 }
            return isHeld(calls)
        }
        guard waits else { return true }
        defer { self.calls.change { $0.waiting -= 1 } }
        do {
            try await self.calls.wait { !isHeld($0) }
            return true
        } catch {
            return false
        }
    }

    private func requireAcceptance() throws(GatewayError) {
        guard self.calls.current.refuses else { return }
        throw GatewayError(.storeUnavailable, "The store refuses, as it was told to")
    }

    /// The file, which is removed with its last view.
    private final class File: Sendable {
        let database: SQLiteDatabase
        private let directory: TemporaryDirectory
        private let missing: Mutex<[Tenant]>

        init(clock: any WallClock, tenants: [Tenant]) throws {
            self.directory = try TemporaryDirectory()
            self.database = try SQLiteDatabase(path: "\(self.directory.path)/gateway.db", clock: clock)
            self.missing = Mutex(tenants)
        }

        deinit {
            self.directory.remove()
            let database = self.database
            // A thread of the database may release the last reference, but can't close the database.
            DispatchQueue.global().async { try? database.close() }
        }

        /// Adds the sample tenants before the first call.
        func addTenants() async throws(GatewayError) {
            let tenants = self.missing.withLock { $0 }
            guard !tenants.isEmpty else { return }
            let store = SQLDirectoryStore(database: self.database, sealer: .sample)
            for tenant in tenants {
                // Concurrent first calls each try this. A later try finds the tenant changed and does nothing.
                let version = try await store.load().version
                _ = try await store.apply(.putTenant(tenant, salt: Array(tenant.id.text.utf8)), plannedAt: version)
            }
            self.missing.withLock { $0 = [] }
        }
    }
}

extension RowSealer {
    /// Seals the rows of test databases.
    package static var sample: RowSealer { RowSealer(keyPepper: .sample("pepper")) }
}
