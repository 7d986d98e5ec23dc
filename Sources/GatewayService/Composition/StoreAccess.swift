package import GatewayCore
package import GatewayStorage
import Logging

/// How the store that a configuration names is opened, whichever database it is.
extension GatewayConfiguration {
    /// The store's address and what goes with it, if it is PostgreSQL.
    package var postgreSQL: PostgreSQLSettings? {
        guard PostgreSQLSettings.isAddress(self.storeURL) else { return nil }
        return PostgreSQLSettings(
            url: self.storeURL,
            password: self.store.password.map { Secret($0.revealed) },
            poolSize: self.store.poolSize
        )
    }

    /// Opens the store to serve it, and tells what closes it.
    func openStore(
        announcing fingerprint: String,
        metrics: GatewayMetrics,
        logger: Logger
    ) async throws(GatewayError) -> (any SQLDatabase, @Sendable () async throws -> Void) {
        if let settings = self.postgreSQL {
            let lock = try StoreLock(ofDirectory: self.dataDir)
            let database = try await PostgreSQLDatabase(
                settings,
                migrates: self.store.migrates,
                metrics: metrics
            ) { reason in
                logger.warning(
                    "The store can't be reached yet; the start waits for it.",
                    metadata: ["reason": "\(reason)"]
                )
            }
            let close = { @Sendable () async throws -> Void in
                database.close()
                lock.release()
            }
            return (database, close)
        }
        let database = try SQLiteDatabase(path: self.databasePath, metrics: StoreMetrics(store: "sqlite", metrics))
        // Before anything is read, so that no command changes the key of what has just been read by another.
        try database.announce(masterKey: fingerprint)
        return (database, { try database.close() })
    }

    /// Opens the store for a command that only looks; never makes, migrates or changes it.
    package func openStoreForReading() async throws(GatewayError) -> any SQLDatabase {
        guard var settings = self.postgreSQL else { return try SQLiteReadOnlyDatabase(path: self.databasePath) }
        settings.poolSize = Self.commandPoolSize
        return try await PostgreSQLDatabase(settings, whenUnreachable: Self.reportWaiting)
    }

    /// A store that a command changes while gateways may serve it.
    package struct JoinedStore: Sendable {
        package let database: any SQLDatabase
        /// Throws `conflict` where a gateway serves the store and seals by another master key; none begins to before the
        /// transaction ends.
        package let requireMasterKey: @Sendable (any SQLConnection) throws -> Void
        package let close: @Sendable () -> Void
    }

    /// Opens the store for a command's change of it, which seals by a master key; never makes or migrates it.
    package func joinStore(sealingBy fingerprint: String) async throws(GatewayError) -> JoinedStore {
        if var settings = self.postgreSQL {
            settings.poolSize = Self.commandPoolSize
            let database = try await PostgreSQLDatabase(settings, whenUnreachable: Self.reportWaiting)
            return JoinedStore(
                database: database,
                requireMasterKey: { try SQLReplicaStore.requireMasterKey(fingerprint, $0) },
                close: { database.close() }
            )
        }
        let database = try SQLiteDatabase(joining: self.databasePath)
        return JoinedStore(
            database: database,
            requireMasterKey: { _ in try database.requireMasterKey(fingerprint) },
            close: { try? database.close() }
        )
    }

    /// Says on standard error that a command waits for the store, and why.
    package static func reportWaiting(_ reason: String) {
        try? StandardStream.errors.write("The store can't be reached yet, waiting for it: \(reason)\n")
    }

    /// A command asks one thing after the other.
    private static var commandPoolSize: Int { 4 }

    /// Whether a gateway writes to the data directory at this moment.
    package func isDataDirectoryServed() throws(GatewayError) -> Bool {
        let path = self.postgreSQL == nil ? self.databasePath : StoreLock.path(inDirectory: self.dataDir)
        return try StoreLock.isHeld(at: path)
    }

    /// Whether a gateway serves SQLite's file, so that the end of the last chain is still open; who writes to PostgreSQL
    /// is told by ``SQLAuditStore/liveWriters()``.
    package func isStoreServed() throws(GatewayError) -> Bool {
        guard self.postgreSQL == nil else { return false }
        return try StoreLock.isHeld(at: self.databasePath)
    }
}
