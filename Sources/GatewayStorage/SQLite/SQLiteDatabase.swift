import Foundation
import GRDB
package import GatewayCore
import NIOPosix

/// SQLite by GRDB: one file, many readers beside one writer, what was written on the disk when a write returns.
package final class SQLiteDatabase: SQLDatabase {
    /// How long a statement waits for another process's lock.
    private static let busyTimeoutSeconds = 2.0
    /// How many scans read at once: the listings that the gate admits, and one of the gateway's own.
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
    /// The size of the write-ahead log in bytes beyond which it is emptied.
    static let defaultLogLimit = 64 * 1024 * 1024

    private let pool: DatabasePool
    private let scanPool: DatabasePool
    private let scanGate = ScanGate()
    private let log: WriteAheadLog
    /// `nil` while another process serves the file.
    private let lock: StoreLock?
    private let path: String
    private let metrics: StoreMetrics?

    package var isShared: Bool { false }

    package func isLeader() async throws(GatewayError) -> Bool { true }

    package func resignLead() async {}

    package func whenNotified(_ observer: @escaping @Sendable () -> Void) {}

    /// Opens a database to serve it, makes it when it is not there, and brings its schema up to date; blocks.
    ///
    /// The clock is the database's own, which `gateway_time()` reads.
    ///
    /// - Throws: `conflict` when another process serves the file, `invalid` when the file is not a gateway's store or
    ///   one of a later version, `storeUnavailable` otherwise.
    package convenience init(
        path: String,
        metrics: StoreMetrics? = nil,
        clock: any WallClock = SystemWallClock()
    ) throws(GatewayError) {
        try self.init(path: path, metrics: metrics, logLimit: Self.defaultLogLimit, clock: clock)
    }

    convenience init(
        path: String,
        metrics: StoreMetrics? = nil,
        logLimit: Int,
        clock: any WallClock = SystemWallClock()
    ) throws(GatewayError) {
        let file = StoreFile(path)
        try file.makeDirectory()
        let lock = try StoreLock(at: file.path)
        try file.makeFile()
        try self.init(file, lock: lock, metrics: metrics, logLimit: logLimit, clock: clock) { pool in
            // The check comes before anything is changed; a foreign file is left as it was.
            try pool.read { try SQLiteSchema.requireKnown($0) }
            try SQLiteSchema.migrator.migrate(pool)
        }
    }

    /// Opens a database for a command's change of it; never makes or migrates one. Blocks.
    ///
    /// A process may serve it; if none does, none can begin to before it is closed.
    ///
    /// - Throws: `notFound` when there is no file, `invalid` when the file is not a gateway's store or one of another
    ///   version, `storeUnavailable` otherwise.
    package convenience init(joining path: String) throws(GatewayError) {
        let file = StoreFile(path)
        guard file.exists else { throw GatewayError(.notFound, "There is no store at \(file.path)") }
        let lock: StoreLock?
        do {
            lock = try StoreLock(at: file.path)
        } catch {
            guard error.code == .conflict else { throw error }
            lock = nil
        }
        let (limit, clock) = (Self.defaultLogLimit, SystemWallClock())
        try self.init(file, lock: lock, metrics: nil, logLimit: limit, clock: clock) { pool in
            try pool.read { try SQLiteSchema.requireCurrent($0) }
        }
    }

    private init(
        _ file: StoreFile,
        lock: StoreLock?,
        metrics: StoreMetrics?,
        logLimit: Int,
        clock: any WallClock,
        prepare: (DatabasePool) throws -> Void
    ) throws(GatewayError) {
        (self.path, self.lock, self.metrics) = (file.path, lock, metrics)
        do {
            self.pool = try Self.pool(of: file, logLimit: logLimit, clock)
            try prepare(self.pool)
            self.scanPool = try Self.scanPool(of: file, clock)
        } catch {
            throw GatewayError(translating: error)
        }
        self.log = WriteAheadLog(at: file.writeAheadLogPath, limit: logLimit, scans: self.scanGate, metrics: metrics)
        self.pool.writeWithoutTransaction { self.log.watch($0) }
    }

    /// Tells commands by which master key this process seals, for as long as it serves the file.
    package func announce(masterKey fingerprint: String) throws(GatewayError) {
        try self.lock?.announce(fingerprint)
    }

    /// Throws `conflict` where another process serves the file and seals by another master key than a command is about to.
    package func requireMasterKey(_ fingerprint: String) throws(GatewayError) {
        guard self.lock == nil, try StoreLock.isHeld(at: self.path) else { return }
        guard try StoreLock.announcement(at: self.path) == fingerprint else {
            throw GatewayError(
                .conflict,
                "A gateway serves this store with another master key; restart it with both keys, or stop it"
            )
        }
    }

    /// Throws `conflict` where another process serves the file.
    func requireLock() throws(GatewayError) {
        guard self.lock == nil else { return }
        throw GatewayError(.conflict, "A gateway serves this store; stop it first: \(self.path)")
    }

    /// Where the file is.
    var directory: String { URL(fileURLWithPath: self.path).deletingLastPathComponent().path }

    /// Runs a closure that only reads, in one snapshot, and blocks the calling thread meanwhile.
    func readBlocking<T>(_ body: (any SQLConnection) throws -> T) throws -> T {
        try self.pool.read { try body(GRDBConnection(db: $0)) }
    }

    private static func pool(of file: StoreFile, logLimit: Int, _ clock: any WallClock) throws -> DatabasePool {
        let pool = try DatabasePool(path: file.path, configuration: Self.configuration(clock, file))
        try file.restrictPermissions()
        try pool.writeWithoutTransaction { db in
            // Set here because opening a pool sets NORMAL, which may lose the last transactions with the power.
            try db.execute(sql: "PRAGMA synchronous = FULL")
            // A log that SQLite begins anew keeps its size otherwise.
            try db.execute(sql: "PRAGMA journal_size_limit = \(logLimit)")
        }
        return pool
    }

    private static func scanPool(of file: StoreFile, _ clock: any WallClock) throws -> DatabasePool {
        var configuration = Self.configuration(clock, file)
        configuration.label = "fcm-gateway.store.scans"
        configuration.readonly = true
        configuration.maximumReaderCount = Self.scanReaderCount
        return try DatabasePool(path: file.path, configuration: configuration)
    }

    /// Moves everything into the one file, closes it, and gives up its lock; `storeUnavailable` while something still reads
    /// or writes.
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

    package func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.metrics.measured(.write, translating: GatewayError.init(translating:)) {
            try await withCheckedThrowingContinuation { continuation in
                self.pool.asyncWrite({ try body(GRDBConnection(db: $0)) }) { db, result in
                    continuation.resume(with: result)
                    self.log.noteWrite(db, in: self.pool, busyTimeoutSeconds: Self.busyTimeoutSeconds)
                }
            }
        }
    }

    package func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        switch load {
        case .lookUp:
            return try await self.metrics.measured(.read, translating: GatewayError.init(translating:)) {
                try await self.pool.read { try body(GRDBConnection(db: $0)) }
            }
        case .scan:
            return try await self.scan(body)
        case .listing:
            let caller: String? = if case .tenant(let tenant) = scope { tenant } else { nil }
            return try await self.scanGate.run(for: caller) { () async throws(GatewayError) -> T in
                try await self.scan(body)
            }
        }
    }

    private func scan<T: Sendable>(
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.metrics.measured(.scan, translating: GatewayError.init(translating:)) {
            try await Self.scanThreads.runIfActive { [scanPool] in
                try scanPool.read { try body(GRDBConnection(db: $0)) }
            }
        }
    }

    /// Takes what was deleted out of the write-ahead log.
    ///
    /// SQLite overwrites deleted rows in the file itself, but earlier copies of their pages may be left in the log; what
    /// can't be taken out now goes with a later erasure, or when the store closes.
    package func eraseDeleted() async {
        await withCheckedContinuation { continuation in
            self.pool.asyncWriteWithoutTransaction { db in
                WriteAheadLog.empty(db, busyTimeoutSeconds: Self.busyTimeoutSeconds)
                continuation.resume()
            }
        }
    }

    private static func configuration(_ clock: any WallClock, _ file: StoreFile) -> Configuration {
        let functions = SQLiteSchema.functions(clock, file)
        var configuration = Configuration()
        configuration.label = "fcm-gateway.store"
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(Self.busyTimeoutSeconds)
        configuration.prepareDatabase { db in
            try SQLiteSchema.requireOursOrEmpty(db)
            try db.execute(sql: "PRAGMA secure_delete = ON")
            for function in functions { db.add(function: function) }
        }
        return configuration
    }
}
