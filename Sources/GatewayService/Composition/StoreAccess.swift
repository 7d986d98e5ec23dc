package import GatewayCore
package import GatewayStorage
import Logging

/// Opens the configured store, SQLite or PostgreSQL.
extension GatewayConfiguration {
    /// The settings of a PostgreSQL store. `nil` if the store is SQLite's.
    package var postgreSQL: PostgreSQLSettings? {
        guard PostgreSQLSettings.isAddress(self.storeURL) else { return nil }
        return PostgreSQLSettings(
            url: self.storeURL,
            password: self.store.password.map { Secret($0.revealed) },
            poolSize: self.store.poolSize
        )
    }

    /// Opens the store for serving. Also returns the function that closes the store.
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
        // The key is announced before anything is read, so that no command can change the master key in between.
        try database.announce(masterKey: fingerprint)
        return (database, { try database.close() })
    }

    /// Opens the store for a read-only command. Never creates, migrates or changes the store.
    package func openStoreForReading() async throws(GatewayError) -> any SQLDatabase {
        guard var settings = self.postgreSQL else { return try SQLiteReadOnlyDatabase(path: self.databasePath) }
        settings.poolSize = Self.commandPoolSize
        return try await PostgreSQLDatabase(settings, whenUnreachable: Self.reportWaiting)
    }

    /// A store that a command may change while gateways serve it.
    package struct JoinedStore: Sendable {
        package let database: any SQLDatabase
        /// Throws `conflict` if a gateway serves the store with another master key. No such gateway can start before
        /// the transaction ends.
        package let requireMasterKey: @Sendable (any SQLConnection) throws -> Void
        package let close: @Sendable () -> Void
    }

    /// Opens the store for a command that changes it with a master key. Never creates or migrates the store.
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

    /// Reports on standard error that a command waits for the store, and why.
    package static func reportWaiting(_ reason: String) {
        try? StandardStream.errors.write("The store can't be reached yet, waiting for it: \(reason)\n")
    }

    /// The smallest allowed pool, because a command runs one query at a time.
    private static var commandPoolSize: Int { 4 }

    /// True if a gateway writes to the data directory at this moment.
    package func isDataDirectoryServed() throws(GatewayError) -> Bool {
        let path = self.postgreSQL == nil ? self.databasePath : StoreLock.path(inDirectory: self.dataDir)
        return try StoreLock.isHeld(at: path)
    }

    /// True if a gateway serves SQLite's file, so that the last chain is still open. Always false for PostgreSQL, where
    /// ``SQLAuditStore/liveWriters()`` returns the writers.
    package func isStoreServed() throws(GatewayError) -> Bool {
        guard self.postgreSQL == nil else { return false }
        return try StoreLock.isHeld(at: self.databasePath)
    }
}
