import GRDB
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Keeps a store's write-ahead log short, also while somebody reads all the time.
///
/// SQLite begins the log anew only when a checkpoint has copied all of it and no read needs it any more
/// (https://sqlite.org/wal.html, 6). Reads that overlap without a gap prevent that for as long as they go on, and the log
/// grows by all that is written. So the writer looks at its size; a log beyond the limit keeps new scans out until those
/// that run have ended, and is then emptied.
final class WriteAheadLog: Sendable {
    /// How long emptying the log may keep writes waiting for reads that are no scans, or another process's.
    private static let patienceMilliseconds = 250

    private struct State {
        /// The size from which on the log is to be emptied.
        var dueSize: Int
        var isDue = false
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

    /// Looks at the log after a write, on the writer's queue.
    func noteWrite(in pool: DatabasePool, busyTimeoutSeconds: Double) {
        let size = self.measure()
        let begins = self.state.withLock { state in
            guard size > state.dueSize, !state.isDue else { return false }
            state.isDue = true
            return true
        }
        guard begins else { return }
        self.scans.shut {
            pool.asyncWriteWithoutTransaction { db in
                Self.empty(db, busyTimeoutSeconds: busyTimeoutSeconds)
                self.scans.open()
                let size = self.measure()
                // Where a read was in the way, the next attempt has to wait, or each write would.
                self.state.withLock { $0 = State(dueSize: max(self.limit, size + self.limit / 4)) }
            }
        }
    }

    /// Moves the log into the store's file and cuts it to nothing, as far as readers allow at this moment.
    static func empty(_ db: Database, busyTimeoutSeconds: Double) {
        try? db.execute(sql: "PRAGMA busy_timeout = \(Self.patienceMilliseconds)")
        _ = try? db.checkpoint(.truncate)
        try? db.execute(sql: "PRAGMA busy_timeout = \(Int(busyTimeoutSeconds * 1_000))")
    }

    /// The log's size in bytes; 0 where there is none.
    private func measure() -> Int {
        var status = stat()
        // The call fills the structure it is handed; the path is valid during the call.
        let size = unsafe stat(self.path, &status) == 0 ? Int(status.st_size) : 0
        self.metrics?.measured(logBytes: size)
        return size
    }
}
