/// Which HTTP/1.1 connection serves which exchange, on one event loop.
///
/// Pure: it opens and closes nothing. A slot is a connection in any state, from the attempt to open it to its end.
struct HTTPPoolState<Connection: AnyObject, Waiter: AnyObject> {
    /// Where an exchange is served.
    enum Place {
        /// By this idle connection.
        case reuse(Connection)
        /// A slot was taken; open a connection for it.
        case connect
    }

    enum CheckOut {
        /// The tenant has taken a place.
        case place(Place)
        /// No slot is free, or none for the tenant; the waiter is queued, and another has lost its place to it.
        case wait(displacing: Waiter?)
        /// As before, and the queue is full.
        case exhausted
    }

    private let maxConnections: Int
    private let maxWaiters: Int
    private var idle: [Connection] = []
    private var waiters = HTTPTenantQueue<Waiter>()
    private var shares = HTTPTenantShares()
    /// Connections in any state.
    private(set) var slots = 0

    init(maxConnections: Int, maxWaiters: Int) {
        precondition(maxConnections > 0, "A pool needs room for a connection, not \(maxConnections).")
        self.maxConnections = maxConnections
        self.maxWaiters = maxWaiters
    }

    var idleCount: Int { self.idle.count }
    var waiterCount: Int { self.waiters.count }

    /// Slots that serve no exchange, or do not exist yet.
    private var free: Int { self.maxConnections - self.slots + self.idle.count }

    /// Decides how an exchange gets its connection.
    ///
    /// The most recently used one is preferred, so that surplus ones age.
    mutating func checkOut(for waiter: Waiter, of tenant: Int) -> CheckOut {
        if self.shares.mayTake(tenant, free: self.free), let place = self.takePlace(for: tenant) {
            return .place(place)
        }
        var displaced: Waiter?
        if self.waiters.count >= self.maxWaiters {
            displaced = self.waiters.displace(for: tenant)
            guard displaced != nil else { return .exhausted }
        }
        self.waiters.append(waiter, of: tenant)
        return .wait(displacing: displaced)
    }

    private mutating func takePlace(for tenant: Int) -> Place? {
        if let connection = self.idle.popLast() {
            self.shares.take(tenant)
            return .reuse(connection)
        }
        guard self.slots < self.maxConnections else { return nil }
        self.slots += 1
        self.shares.take(tenant)
        return .connect
    }

    /// Takes the next exchange off the queue for which there is a place, and takes that.
    mutating func next() -> (Waiter, Place)? {
        guard !self.waiters.isEmpty, self.free > 0 else { return nil }
        let (shares, free) = (self.shares, self.free)
        guard let (waiter, tenant) = self.waiters.pop(of: { shares.mayTake($0, free: free) }),
            let place = self.takePlace(for: tenant)
        else { return nil }
        return (waiter, place)
    }

    /// Counts a connection that was opened for no exchange of this pool.
    ///
    /// - Returns: false if there are as many as may be.
    mutating func adopt() -> Bool {
        guard self.slots < self.maxConnections else { return false }
        self.slots += 1
        return true
    }

    /// Takes back a connection that can serve again.
    ///
    /// - Parameters:
    ///   - connection: the connection.
    ///   - tenant: who had taken it; nil if nobody had.
    mutating func checkIn(_ connection: Connection, from tenant: Int?) {
        if let tenant { self.shares.give(tenant) }
        self.idle.append(connection)
    }

    /// Frees the slot of a connection that ended or could not be opened.
    ///
    /// - Parameters:
    ///   - connection: the connection; nil if there never was one.
    ///   - tenant: who had taken it; nil if nobody had.
    mutating func freeSlot(of connection: Connection?, from tenant: Int?) {
        if let connection, let index = self.idle.lastIndex(where: { $0 === connection }) {
            self.idle.remove(at: index)
        }
        if let tenant { self.shares.give(tenant) }
        self.slots -= 1
    }

    /// Removes an exchange that waits no longer.
    mutating func remove(_ waiter: Waiter, of tenant: Int) {
        self.waiters.remove(of: tenant) { $0 === waiter }
    }

    /// Empties the queue.
    mutating func removeAllWaiters() -> [Waiter] {
        self.waiters.removeAll()
    }
}
