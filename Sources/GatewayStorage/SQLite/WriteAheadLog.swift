import GRDB
import GRDBSQLite
import Synchronization

/// Keeps a store's write-ahead log short, also while there is always a reader.
///
/// SQLite begins the log anew only when a checkpoint has copied all of it and no read needs it any more
/// (https://sqlite.org/wal.html, 6). Reads that overlap without a gap prevent that for as long as they go on, and the log
/// grows by all that is written. So the writer looks at its size; a log beyond the limit keeps new scans out until those
/// that run have ended, and is then emptied.
///
/// The log takes the place of SQLite's own checkpoints, too: of a log that can't be begun anew, SQLite makes one with each
/// transaction, which then has to wait for the disk three times.
final class WriteAheadLog: Sendable {
    /// How long emptying the log may keep writes waiting for reads that are no scans, or another process's.
    private static let emptyingTimeoutMilliseconds = 250

    /// Pages after which what is in the log is copied into the file, as SQLite itself has it.
    private static let checkpointInterval = 1_000

    /// What is due; pure.
    struct State {
        /// The size from which on the log is to be emptied.
        var dueSize: Int
        var isBeingEmptied = false
        /// The log's pages after the last transaction.
        var pages = 0
        /// The pages from which on they are to be copied again.
        var duePages = WriteAheadLog.checkpointInterval

        /// Notes the pages after a transaction; fewer than before mean that the log was begun anew.
        mutating func note(pages: Int) {
            if pages < self.pages { self.duePages = WriteAheadLog.checkpointInterval }
            self.pages = pages
        }

        /// Whether the pages are to be copied now.
        mutating func takeCheckpoint() -> Bool {
            guard self.pages >= self.duePages else { return false }
            self.duePages = self.pages + WriteAheadLog.checkpointInterval
            return true
        }
    }

    /// The size in bytes beyond which the log is emptied; SQLite itself does so at 4 MiB where no read is in its way.
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

    /// Has the writer's connection tell the log's pages, and leave checkpoints to ``noteWrite(_:in:busyTimeoutSeconds:)``.
    ///
    /// The connection must not write once this object has gone.
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

    /// Looks at the log after a write, on the writer's queue.
    func noteWrite(_ db: Database, in pool: DatabasePool, busyTimeoutSeconds: Double) {
        if self.state.withLock({ $0.takeCheckpoint() }) {
            // One that can't copy all is followed by another.
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
                // Where a read was in the way, the next attempt has to wait, or each write would.
                self.state.withLock { state in
                    state.dueSize = max(self.limit, size + self.limit / 4)
                    state.isBeingEmptied = false
                }
            }
        }
    }

    /// Moves the log into the store's file and cuts it to nothing, as far as readers allow at this moment.
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
