import Foundation
import GRDB
package import GatewayCore
import NIOPosix

/// SQLite through GRDB: one file, one writer beside many readers. A write is on the disk when it returns.
package final class SQLiteDatabase: SQLDatabase {
    /// The longest wait of a statement for another process's lock.
    private static let busyTimeoutSeconds = 2.0
    /// Scans that read at once: the listings that the gate admits, and one of the gateway's own.
    private static let scanReaderCount = ScanGate.Limits().running + 1
    /// The threads of scans.
    ///
    /// GRDB's connections share Dispatch's threads, one for each processor. Two scans would leave a small machine none
    /// for writes.
    private static let scanThreads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: SQLiteDatabase.scanReaderCount)
        threads.start()
        return threads
    }()
    /// The write-ahead log is emptied beyond this size in bytes.
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

    /// Opens a database to serve it. Creates it if it does not exist, and migrates its schema. Blocks.
    ///
    /// The clock is the database's own, which `gateway_time()` reads.
    ///
    /// - Throws: `conflict` if another process serves the file, `invalid` if the file is not a gateway's store or a
    ///   later version wrote it, `storeUnavailable` otherwise.
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
            // The check precedes any change, so that a foreign file is left untouched.
            try pool.read { try SQLiteSchema.requireKnown($0) }
            try SQLiteSchema.migrator.migrate(pool)
        }
    }

    /// Opens a database for a command that changes it. Never creates or migrates one. Blocks.
    ///
    /// Another process may serve it. If none does, none can start to until this object is closed.
    ///
    /// - Throws: `notFound` if there is no file, `invalid` if the file is not a gateway's store or is from another
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

    /// Publishes the fingerprint of the master key with which this process seals, for as long as it serves the file.
    package func announce(masterKey fingerprint: String) throws(GatewayError) {
        try self.lock?.announce(fingerprint)
    }

    /// Throws `conflict` if another process serves the file and seals with another master key than the command's.
    package func requireMasterKey(_ fingerprint: String) throws(GatewayError) {
        guard self.lock == nil, try StoreLock.isHeld(at: self.path) else { return }
        guard try StoreLock.announcement(at: self.path) == fingerprint else {
            throw GatewayError(
                .conflict,
                "A gateway serves this store with another master key; restart it with both keys, or stop it"
            )
        }
    }

    /// Throws `conflict` if another process serves the file.
    func requireLock() throws(GatewayError) {
        guard self.lock == nil else { return }
        throw GatewayError(.conflict, "A gateway serves this store; stop it first: \(self.path)")
    }

    var directory: String { URL(fileURLWithPath: self.path).deletingLastPathComponent().path }

    /// Runs a closure that only reads, in one snapshot. Blocks the calling thread.
    func readBlocking<T>(_ body: (any SQLConnection) throws -> T) throws -> T {
        try self.pool.read { try body(GRDBConnection(db: $0)) }
    }

    private static func pool(of file: StoreFile, logLimit: Int, _ clock: any WallClock) throws -> DatabasePool {
        let pool = try DatabasePool(path: file.path, configuration: Self.configuration(clock, file))
        try file.restrictPermissions()
        try pool.writeWithoutTransaction { db in
            // Opening a pool sets NORMAL, which may lose the last transactions in a power failure.
            try db.execute(sql: "PRAGMA synchronous = FULL")
            // A log that SQLite restarts would keep its size.
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

    /// Moves the log into the file, closes it and releases its lock. Throws `storeUnavailable` while something reads or
    /// writes.
    package func close() throws(GatewayError) {
        do {
            // Readers close first: the last connection checkpoints the log, and a reader can't.
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

    /// Removes deleted rows from the write-ahead log.
    ///
    /// SQLite overwrites deleted rows in the file itself, but the log may hold earlier copies of their pages. A
    /// later erasure, or closing the store, removes the copies that readers still need now.
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
