import GRDB
import GRDBSQLite
import Synchronization

/// Keeps a store's write-ahead log short, also while there is always a reader.
///
/// SQLite restarts the log only when a checkpoint has copied all of it and no read needs it any more
/// (https://sqlite.org/wal.html, 6). Reads that overlap without a gap prevent that, and the log grows with each write.
/// So the writer watches the log's size. Beyond the limit it admits no new scans, waits for the running ones to end,
/// and empties the log.
///
/// This type also replaces SQLite's automatic checkpoints. With a log that can't be restarted, SQLite would make one
/// after each transaction, which would then wait for the disk three times.
///
/// Example with the limit of 64 MiB: at 65 MiB scans stop and the log is emptied. If another read prevents that, the
/// next attempt follows at 81 MiB, not at the next write.
final class WriteAheadLog: Sendable {
    /// The longest that emptying the log delays writes for reads other than scans, or for another process's.
    private static let emptyingTimeoutMilliseconds = 250

    /// A checkpoint copies the log into the file after this many pages, SQLite's own interval.
    private static let checkpointInterval = 1_000

    /// Decides when a checkpoint and emptying are due. Pure.
    struct State {
        /// The log is emptied beyond this size.
        var dueSize: Int
        var isBeingEmptied = false
        /// The log's pages after the last transaction.
        var pages = 0
        /// The next checkpoint is due at this number of pages.
        var duePages = WriteAheadLog.checkpointInterval

        /// Records the pages after a transaction. Fewer than before mean that the log was restarted.
        mutating func note(pages: Int) {
            if pages < self.pages { self.duePages = WriteAheadLog.checkpointInterval }
            self.pages = pages
        }

        /// Returns true if a checkpoint is due now.
        mutating func takeCheckpoint() -> Bool {
            guard self.pages >= self.duePages else { return false }
            self.duePages = self.pages + WriteAheadLog.checkpointInterval
            return true
        }
    }

    /// The log is emptied beyond this size in bytes. SQLite itself restarts it at 4 MiB if no read prevents it.
    let limit: Int

    private let path: String
    private let scans: ScanGate
    private let metrics: StoreMetrics?
    private let state: Mutex<State>

    init(at path: String, limit: Int, scans: ScanGate, metrics: StoreMetrics?) {
        self.path = path
        self.limit = limit
        self.scans = scans
        self.metrics = metrics
        self.state = Mutex(State(dueSize: limit))
    }

    /// Makes the writer's connection report the log's pages, and leave checkpoints to
    /// ``noteWrite(_:in:busyTimeoutSeconds:)``.
    ///
    /// The connection must not write after this object is deallocated.
    func watch(_ db: Database) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        // Unsafe: a pointer to this object, which outlives the writes of its database.
        unsafe sqlite3_wal_hook(
            db.sqliteConnection,
            { context, _, _, pages in
                guard let context = unsafe context else { return SQLITE_OK }
                let log = unsafe Unmanaged<WriteAheadLog>.fromOpaque(context).takeUnretainedValue()
                log.state.withLock { $0.note(pages: Int(pages)) }
                return SQLITE_OK
            },
            context
        )
    }

    /// Checks the log after a write, on the writer's queue.
    func noteWrite(_ db: Database, in pool: DatabasePool, busyTimeoutSeconds: Double) {
        if self.state.withLock({ $0.takeCheckpoint() }) {
            // A checkpoint that can't copy all pages is followed by another.
            _ = try? db.checkpoint(.passive)
        }
        let size = self.measure()
        let begins = self.state.withLock { state in
            guard size > state.dueSize, !state.isBeingEmptied else { return false }
            state.isBeingEmptied = true
            return true
        }
        guard begins else { return }
        self.scans.shut {
            pool.asyncWriteWithoutTransaction { db in
                Self.empty(db, busyTimeoutSeconds: busyTimeoutSeconds)
                self.scans.open()
                let size = self.measure()
                // If a read prevented this, the next attempt waits for growth. Otherwise each write would try.
                self.state.withLock { state in
                    state.dueSize = max(self.limit, size + self.limit / 4)
                    state.isBeingEmptied = false
                }
            }
        }
    }

    /// Moves the log into the store's file and truncates it, as far as current readers allow.
    static func empty(_ db: Database, busyTimeoutSeconds: Double) {
        try? db.execute(sql: "PRAGMA busy_timeout = \(Self.emptyingTimeoutMilliseconds)")
        _ = try? db.checkpoint(.truncate)
        try? db.execute(sql: "PRAGMA busy_timeout = \(Int(busyTimeoutSeconds * 1_000))")
    }

    private func measure() -> Int {
        let size = POSIXFile.size(of: self.path)
        self.metrics?.measured(logBytes: size)
        return size
    }
}
