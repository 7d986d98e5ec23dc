import GRDB
package import GatewayCore

/// The file that holds everything of a gateway that runs alone, open for serving.
///
/// Reads run beside each other and beside the one writer. What was written is on the disk when a write returns.
package final class SQLiteDatabase: SQLiteReading {
    /// How long a statement waits for another process's lock.
    private static let busyTimeoutSeconds = 2.0
    /// How long an erasure may keep other writes waiting.
    private static let erasureTimeoutMilliseconds = 250

    private let pool: DatabasePool
    private let lock: StoreLock

    /// Opens a database, makes it when it is not there, and brings its schema up to date.
    ///
    /// Blocks; for start-up.
    ///
    /// - Parameter path: the file's path; missing directories are made.
    /// - Throws: `conflict` when another process serves the file, `invalid` when the file is not a gateway's store or
    ///   one of a later version, `storeUnavailable` otherwise.
    package init(path: String) throws(GatewayError) {
        let file = StoreFile(path)
        try file.makeDirectory()
        self.lock = try StoreLock(at: file.path)
        try file.makeFile()
        do {
            // The check comes before anything is changed; a foreign file is left as it was.
            self.pool = try DatabasePool(path: file.path, configuration: Self.configuration())
            try file.restrictPermissions()
            // Set here because opening a pool sets NORMAL, which may lose the last transactions with the power.
            try self.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try self.pool.read { try SQLiteSchema.requireKnown($0) }
            try SQLiteMigrations.migrator.migrate(self.pool)
        } catch {
            throw GatewayError(translating: error)
        }
    }

    /// Moves everything into the one file, closes it, and gives up its lock; later calls of anything fail.
    ///
    /// - Throws: `storeUnavailable` when something still reads or writes.
    package func close() throws(GatewayError) {
        do {
            // Readers first: the connection that closes last tidies up, and readers can't.
            self.pool.releaseMemory()
            try self.pool.close()
        } catch {
            throw GatewayError(translating: error)
        }
        self.lock.release()
    }

    /// Writes in one transaction, away from event loops.
    ///
    /// A cancelled task's write is made all the same, so that its caller knows what came of it.
    ///
    /// - Throws: `storeUnavailable`, or what the body throws; then nothing was written.
    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        let result: Result<T, any Error> = await withCheckedContinuation { continuation in
            self.pool.asyncWrite(body) { _, result in continuation.resume(returning: result) }
        }
        switch result {
        case .success(let value): return value
        case .failure(let error): throw GatewayError(translating: error)
        }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        do {
            return try await self.pool.read(body)
        } catch {
            throw GatewayError(translating: error)
        }
    }

    /// Takes what was deleted out of the write-ahead log, as far as readers allow at this moment.
    ///
    /// Deleted rows are overwritten in the file itself, but earlier copies of their pages may be left in the log; what
    /// can't be taken out now goes with a later erasure, or when the store closes.
    func eraseDeleted() async {
        await withCheckedContinuation { continuation in
            self.pool.asyncWriteWithoutTransaction { db in
                try? db.execute(sql: "PRAGMA busy_timeout = \(Self.erasureTimeoutMilliseconds)")
                _ = try? db.checkpoint(.truncate)
                try? db.execute(sql: "PRAGMA busy_timeout = \(Int(Self.busyTimeoutSeconds * 1_000))")
                continuation.resume()
            }
        }
    }

    private static func configuration() -> Configuration {
        var configuration = Configuration()
        configuration.label = "fcm-gateway.store"
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(Self.busyTimeoutSeconds)
        configuration.prepareDatabase { db in
            try SQLiteSchema.requireOursOrEmpty(db)
            try db.execute(sql: "PRAGMA secure_delete = ON")
        }
        return configuration
    }
}
