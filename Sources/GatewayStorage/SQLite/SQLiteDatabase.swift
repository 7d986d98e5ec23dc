import GRDB
package import GatewayCore
import NIOPosix

/// The file that holds everything of a gateway that runs alone, open for serving.
///
/// Reads run beside each other and beside the one writer. What was written is on the disk when a write returns.
package final class SQLiteDatabase: SQLiteReading {
    /// How long a statement waits for another process's lock.
    private static let busyTimeoutSeconds = 2.0
    /// How many scans read at once: those that the gate admits, and one of the gateway's own.
    private static let scanReaderCount = ScanGate.Limits().running + 1
    /// Threads of scans.
    ///
    /// GRDB's connections share the threads of Dispatch, which are as many as there are processors: two scans would leave
    /// a small machine none for writes.
    private static let scanThreads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: SQLiteDatabase.scanReaderCount)
        threads.start()
        return threads
    }()
    /// The size of the write-ahead log beyond which it is emptied.
    static let defaultLogLimit = 64 * 1024 * 1024

    /// What is entered of the audit's spans, by this process.
    let auditSpanMemory = AuditSpanMemory()

    private let pool: DatabasePool
    /// Reads long parts of the file with connections of its own, so that nothing else waits for one.
    let scans: any SQLiteReading
    private let scanPool: DatabasePool
    private let scanGate = ScanGate()
    private let log: WriteAheadLog
    /// `nil` while another process serves the file.
    private let lock: StoreLock?
    private let path: String
    private let metrics: StoreMetrics?

    /// Opens a database, makes it when it is not there, and brings its schema up to date.
    ///
    /// Blocks; for start-up.
    ///
    /// - Parameters:
    ///   - path: the file's path; missing directories are made.
    ///   - metrics: measures its calls.
    /// - Throws: `conflict` when another process serves the file, `invalid` when the file is not a gateway's store or
    ///   one of a later version, `storeUnavailable` otherwise.
    package convenience init(path: String, metrics: StoreMetrics? = nil) throws(GatewayError) {
        try self.init(path: path, metrics: metrics, logLimit: Self.defaultLogLimit)
    }

    /// The same, with another limit of the write-ahead log in bytes.
    init(path: String, metrics: StoreMetrics? = nil, logLimit: Int) throws(GatewayError) {
        self.metrics = metrics
        let file = StoreFile(path)
        try file.makeDirectory()
        self.lock = try StoreLock(at: file.path)
        self.path = file.path
        try file.makeFile()
        do {
            // The check comes before anything is changed; a foreign file is left as it was.
            self.pool = try Self.pool(of: file, logLimit: logLimit)
            try self.pool.read { try SQLiteSchema.requireKnown($0) }
            try SQLiteMigrations.migrator.migrate(self.pool)
            self.scanPool = try Self.scanPool(of: file)
        } catch {
            throw GatewayError(translating: error)
        }
        self.scans = SQLiteReaders(
            pool: self.scanPool,
            threads: Self.scanThreads,
            operation: .scan,
            metrics: metrics
        )
        self.log = WriteAheadLog(at: file.writeAheadLogPath, limit: logLimit, scans: self.scanGate, metrics: metrics)
        self.watchLog()
    }

    /// Opens a database for a command's change of it, whether or not a process serves it; never makes or migrates one.
    ///
    /// If no process serves it, none can begin to before it is closed. Blocks; for commands.
    ///
    /// - Parameter path: the file's path.
    /// - Throws: `notFound` when there is no file, `invalid` when the file is not a gateway's store or one of another
    ///   version, `storeUnavailable` otherwise.
    package init(joining path: String) throws(GatewayError) {
        let file = StoreFile(path)
        guard file.exists else { throw GatewayError(.notFound, "There is no store at \(file.path)") }
        self.metrics = nil
        do {
            self.lock = try StoreLock(at: file.path)
        } catch {
            guard error.code == .conflict else { throw error }
            self.lock = nil
        }
        self.path = file.path
        do {
            self.pool = try Self.pool(of: file, logLimit: Self.defaultLogLimit)
            try self.pool.read { db in
                try SQLiteSchema.requireKnown(db)
                try SQLiteSchema.requireCurrent(db)
            }
            self.scanPool = try Self.scanPool(of: file)
        } catch {
            throw GatewayError(translating: error)
        }
        self.scans = SQLiteReaders(pool: self.scanPool, threads: Self.scanThreads, operation: .scan, metrics: nil)
        self.log = WriteAheadLog(
            at: file.writeAheadLogPath,
            limit: Self.defaultLogLimit,
            scans: self.scanGate,
            metrics: nil
        )
        self.watchLog()
    }

    private func watchLog() {
        self.pool.writeWithoutTransaction { self.log.watch($0) }
    }

    /// Tells commands by which master key this process seals, for as long as it serves the file.
    ///
    /// - Parameter fingerprint: the master key's.
    /// - Throws: `storeUnavailable` when it can't be written.
    package func announce(masterKey fingerprint: String) throws(GatewayError) {
        try self.lock?.announce(fingerprint)
    }

    /// Makes sure that whoever serves the file seals by the same master key as a command is about to.
    ///
    /// - Throws: `conflict` when another process serves the file and seals by another key.
    func requireMasterKey(_ fingerprint: String) throws(GatewayError) {
        guard self.lock == nil, try StoreLock.isHeld(at: self.path) else { return }
        guard try StoreLock.announcement(at: self.path) == fingerprint else {
            throw GatewayError(
                .conflict,
                "A gateway serves this store with another master key; restart it with both keys, or stop it"
            )
        }
    }

    private static func pool(of file: StoreFile, logLimit: Int) throws -> DatabasePool {
        let pool = try DatabasePool(path: file.path, configuration: Self.configuration())
        try file.restrictPermissions()
        try pool.writeWithoutTransaction { db in
            // Set here because opening a pool sets NORMAL, which may lose the last transactions with the power.
            try db.execute(sql: "PRAGMA synchronous = FULL")
            // A log that SQLite begins anew keeps its size otherwise.
            try db.execute(sql: "PRAGMA journal_size_limit = \(logLimit)")
        }
        return pool
    }

    private static func scanPool(of file: StoreFile) throws -> DatabasePool {
        var configuration = Self.configuration()
        configuration.label = "fcm-gateway.store.scans"
        configuration.readonly = true
        configuration.maximumReaderCount = Self.scanReaderCount
        return try DatabasePool(path: file.path, configuration: configuration)
    }

    /// Moves everything into the one file, closes it, and gives up its lock; later calls of anything fail.
    ///
    /// - Throws: `storeUnavailable` when something still reads or writes.
    package func close() throws(GatewayError) {
        do {
            // Readers first: the connection that closes last tidies up, and readers can't.
            try self.scanPool.close()
            self.pool.releaseMemory()
            try self.pool.close()
        } catch {
            throw GatewayError(translating: error)
        }
        self.lock?.release()
    }

    /// Writes in one transaction, away from event loops.
    ///
    /// A cancelled task's write is made all the same, so that its caller knows what came of it.
    ///
    /// - Throws: `storeUnavailable`, or what the body throws; then nothing was written.
    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        let start = ContinuousClock.now
        let result: Result<T, any Error> = await withCheckedContinuation { continuation in
            self.pool.asyncWrite(body) { db, result in
                continuation.resume(returning: result)
                self.log.noteWrite(db, in: self.pool, busyTimeoutSeconds: Self.busyTimeoutSeconds)
            }
        }
        return try result.ended(.write, since: start, self.metrics)
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        try await SQLiteReaders(pool: self.pool, operation: .read, metrics: self.metrics).read(body)
    }

    /// Reads a long part of the file for somebody: one scan for each caller at a time, and few in all.
    ///
    /// - Parameters:
    ///   - caller: who asked for it: a tenant, or `nil` for operators.
    ///   - body: reads; it must end soon, since others wait for it.
    /// - Returns: what the body returns.
    /// - Throws: `overloaded` when too many wait already; else as ``read(_:)``.
    func scan<T: Sendable>(
        for caller: String?,
        _ body: @escaping @Sendable (Database) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.scanGate.run(for: caller) { () async throws(GatewayError) -> T in
            try await self.scans.read(body)
        }
    }

    /// Takes what was deleted out of the write-ahead log, as far as readers allow at this moment.
    ///
    /// Deleted rows are overwritten in the file itself, but earlier copies of their pages may be left in the log; what
    /// can't be taken out now goes with a later erasure, or when the store closes.
    func eraseDeleted() async {
        await withCheckedContinuation { continuation in
            self.pool.asyncWriteWithoutTransaction { db in
                WriteAheadLog.empty(db, busyTimeoutSeconds: Self.busyTimeoutSeconds)
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

/// Connections of a pool that read.
private struct SQLiteReaders: SQLiteReading {
    let pool: DatabasePool
    /// Where to read; `nil` for GRDB's own choice.
    var threads: NIOThreadPool?
    let operation: StoreMetrics.Operation
    let metrics: StoreMetrics?

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws(GatewayError) -> T {
        let start = ContinuousClock.now
        let result: Result<T, any Error>
        do {
            if let threads = self.threads {
                result = .success(try await threads.runIfActive { [pool] in try pool.read(body) })
            } else {
                result = .success(try await self.pool.read(body))
            }
        } catch {
            result = .failure(error)
        }
        return try result.ended(self.operation, since: start, self.metrics)
    }
}

extension Result {
    /// Measures a call of the store and hands out what came of it.
    fileprivate func ended(
        _ operation: StoreMetrics.Operation,
        since start: ContinuousClock.Instant,
        _ metrics: StoreMetrics?
    ) throws(GatewayError) -> Success {
        switch self {
        case .success(let value):
            metrics?.ended(operation, nil, in: .now - start)
            return value
        case .failure(let error):
            let error = GatewayError(translating: error)
            metrics?.ended(operation, error, in: .now - start)
            throw error
        }
    }
}
