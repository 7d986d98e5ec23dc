import NIOCore

/// Which HTTP/1.1 connection serves which exchange, on one event loop.
///
/// Pure: it opens and closes nothing. A slot is a connection in any state, from the attempt to open it to its end.
struct HTTPPoolState<Connection: AnyObject, Waiter: AnyObject> {
    enum CheckOut {
        /// Use this idle connection.
        case reuse(Connection)
        /// A slot was taken; open a connection for it.
        case connect
        /// All slots are taken; the waiter is queued.
        case wait
        /// All slots are taken, and the queue is full.
        case exhausted
    }

    private let maxConnections: Int
    private let maxWaiters: Int
    private var idle: [Connection] = []
    private var waiters = CircularBuffer<Waiter>()
    /// Connections in any state.
    private(set) var slots = 0

    init(maxConnections: Int, maxWaiters: Int) {
        precondition(maxConnections > 0, "A pool needs room for a connection, not \(maxConnections).")
        self.maxConnections = maxConnections
        self.maxWaiters = maxWaiters
    }

    var idleCount: Int { self.idle.count }
    var waiterCount: Int { self.waiters.count }

    /// Decides how an exchange gets its connection.
    ///
    /// The most recently used one is preferred, so that surplus ones age.
    mutating func checkOut(for waiter: Waiter) -> CheckOut {
        if let connection = self.idle.popLast() {
            return .reuse(connection)
        }
        if self.slots < self.maxConnections {
            self.slots += 1
            return .connect
        }
        guard self.waiters.count < self.maxWaiters else { return .exhausted }
        self.waiters.append(waiter)
        return .wait
    }

    /// Counts a connection that was opened for no exchange of this pool.
    ///
    /// - Returns: false if there are as many as may be.
    mutating func adopt() -> Bool {
        guard self.slots < self.maxConnections else { return false }
        self.slots += 1
        return true
    }

    /// Frees a slot whose attempt led to something else; exchanges that wait stay queued.
    mutating func surrenderSlot() {
        self.slots -= 1
    }

    /// Takes back a connection that can serve again.
    ///
    /// - Returns: the exchange to give it to; nil if it is idle now.
    mutating func checkIn(_ connection: Connection) -> Waiter? {
        if let waiter = self.waiters.popFirst() {
            return waiter
        }
        self.idle.append(connection)
        return nil
    }

    /// Frees the slot of a connection that ended or could not be opened.
    ///
    /// - Parameter connection: the connection; nil if there never was one.
    /// - Returns: the exchange the slot now belongs to, for which a connection has to be opened.
    mutating func freeSlot(of connection: Connection?) -> Waiter? {
        if let connection, let index = self.idle.lastIndex(where: { $0 === connection }) {
            self.idle.remove(at: index)
        }
        guard let waiter = self.waiters.popFirst() else {
            self.slots -= 1
            return nil
        }
        return waiter
    }

    /// Removes an exchange that waits no longer.
    mutating func remove(_ waiter: Waiter) {
        self.waiters.removeAll { $0 === waiter }
    }

    /// Empties the queue.
    mutating func removeAllWaiters() -> [Waiter] {
        defer { self.waiters.removeAll() }
        return Array(self.waiters)
    }
}
