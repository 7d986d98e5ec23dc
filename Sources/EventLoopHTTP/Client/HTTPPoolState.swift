/// The pool's record of one connection, stored in the connection so that exchanges need no look-up.
struct HTTPPoolPlaces {
    /// Exchanges that the connection may carry at once: one in HTTP/1.1, the peer's allowed streams in HTTP/2.
    var limit: Int
    fileprivate(set) var taken = 0
    fileprivate(set) var isMember = false

    init(limit: Int) {
        self.limit = limit
    }

    fileprivate var hasRoom: Bool { self.taken < self.limit }
}

/// A connection that a pool can hold.
protocol HTTPPoolMember: AnyObject {
    var places: HTTPPoolPlaces { get set }
}

/// Assigns exchanges to connections, and decides when another connection is needed, on one event loop.
///
///     admit ─► a place is free and within the tenant's share ─► start
///       └────► wait in the tenant's line ─► a place becomes free ─► start
///                      └─ more wait than attempts will carry ─► connect
///
/// HTTP/1.1 and HTTP/2 differ only in the places of a connection. A burst starts as many attempts to connect as it
/// needs if each new connection has as many places as the last one. Example: 250 exchanges that wait for HTTP/2 connections with 100 places
/// start 3 attempts. While no connection has been made, there is a single attempt. Pure: it opens and closes nothing.
struct HTTPPoolState<Connection: HTTPPoolMember, Waiter: AnyObject> {
    enum Admission {
        /// Use this connection. The place is taken.
        case start(Connection)
        /// No place is free, or none for the tenant. The exchange is queued, and another may have lost its place in the
        /// queue.
        case wait(displacing: Waiter?)
        /// No place is free, and the queue is full.
        case exhausted
    }

    private struct Entry {
        let waiter: Waiter
        /// The connection that refused the exchange. Another one should carry it.
        let avoided: Connection?
    }

    /// The maximum of connections in the last protocol seen.
    private var maxConnections: Int
    private let maxWaiters: Int
    /// The expected places of a new connection. Nil until the first connection, unless the protocol is known.
    private var expectedPlaces: Int?
    private(set) var attempts = 0
    private(set) var connectionCount = 0
    /// The connections with room.
    ///
    /// The last one is used first, so that surplus connections of a burst become idle. A connection that was full joins
    /// at the end.
    private var open: [Connection] = []
    /// The places of all connections.
    private var places = 0
    private var taken = 0
    private var queue = HTTPTenantQueue<Entry>()
    private var shares = HTTPTenantShares()

    init(maxConnections: Int, maxWaiters: Int, expectedPlaces: Int?) {
        precondition(maxConnections > 0, "A pool needs room for a connection, not \(maxConnections).")
        self.maxConnections = maxConnections
        self.maxWaiters = maxWaiters
        self.expectedPlaces = expectedPlaces
    }

    var waiterCount: Int { self.queue.count }

    /// Free places, including those of connections that could be opened.
    private var free: Int {
        self.places - self.taken + max(0, self.maxConnections - self.connectionCount) * (self.expectedPlaces ?? 0)
    }

    /// Exchanges that the current attempts are expected to carry.
    private var expected: Int { self.attempts * (self.expectedPlaces ?? 0) }

    // MARK: Exchanges

    /// Decides how an exchange gets a place.
    ///
    /// The connection that refused it is used only if there can be no other.
    mutating func admit(_ waiter: Waiter, of tenant: Int, avoiding avoided: Connection? = nil) -> Admission {
        if self.shares.mayTake(tenant, free: self.free) {
            if let connection = self.open.last(where: { $0 !== avoided }) {
                self.take(connection, for: tenant)
                return .start(connection)
            }
            if let avoided, self.attempts == 0, self.connectionCount >= self.maxConnections,
                avoided.places.isMember, avoided.places.hasRoom
            {
                self.take(avoided, for: tenant)
                return .start(avoided)
            }
        }
        var displaced: Entry?
        if self.queue.count - self.expected >= self.maxWaiters {
            displaced = self.queue.displace(for: tenant)
            guard displaced != nil else { return .exhausted }
        }
        let entry = Entry(waiter: waiter, avoided: avoided)
        if avoided == nil {
            self.queue.append(entry, of: tenant)
        } else {
            // It has waited before.
            self.queue.prepend(entry, of: tenant)
        }
        return .wait(displacing: displaced?.waiter)
    }

    /// Dequeues the next exchange that has a place, and takes the place.
    mutating func next() -> (Waiter, Connection)? {
        guard !self.queue.isEmpty, let last = self.open.last else { return nil }
        let (shares, free) = (self.shares, self.free)
        for index in self.open.indices.reversed() {
            let connection = self.open[index]
            let next = self.queue.pop(of: { shares.mayTake($0, free: free) }, where: { $0.avoided !== connection })
            if let (entry, tenant) = next {
                self.take(connection, for: tenant)
                return (entry.waiter, connection)
            }
        }
        // All that wait were refused by the connections with room. They return there only if no other connection is
        // expected.
        guard self.attempts == 0, let (entry, tenant) = self.queue.pop(of: { shares.mayTake($0, free: free) }) else {
            return nil
        }
        self.take(last, for: tenant)
        return (entry.waiter, last)
    }

    private mutating func take(_ connection: Connection, for tenant: Int) {
        connection.places.taken += 1
        self.taken += 1
        self.shares.take(tenant)
        if !connection.places.hasRoom { self.close(connection) }
    }

    mutating func release(_ connection: Connection, of tenant: Int) {
        guard connection.places.isMember else { return }
        let hadRoom = connection.places.hasRoom
        connection.places.taken -= 1
        self.taken -= 1
        self.shares.give(tenant)
        if !hadRoom, connection.places.hasRoom { self.open.append(connection) }
    }

    private mutating func close(_ connection: Connection) {
        if let index = self.open.lastIndex(where: { $0 === connection }) { self.open.remove(at: index) }
    }

    mutating func remove(_ waiter: Waiter, of tenant: Int) {
        self.queue.remove(of: tenant) { $0.waiter === waiter }
    }

    mutating func removeAllWaiters() -> [Waiter] {
        self.queue.removeAll().map(\.waiter)
    }

    // MARK: Connections

    /// Decides if another connection is needed for waiting exchanges, and counts the attempt.
    ///
    /// A tenant's waiting exchanges beyond its share do not count.
    mutating func shouldConnect() -> Bool {
        guard self.connectionCount + self.attempts < self.maxConnections, !self.queue.isEmpty else { return false }
        if self.expectedPlaces == nil {
            guard self.attempts == 0 else { return false }
        } else {
            let (shares, free) = (self.shares, self.free)
            guard self.queue.count(beyond: self.expected, upTo: { shares.room(for: $0, free: free) }) else {
                return false
            }
        }
        self.attempts += 1
        return true
    }

    /// An attempt has succeeded, in a protocol with this maximum of connections.
    mutating func connected(_ connection: Connection, maxConnections: Int) {
        self.attempts -= 1
        self.maxConnections = maxConnections
        self.expectedPlaces = max(1, connection.places.limit)
        self.connectionCount += 1
        self.places += connection.places.limit
        connection.places.isMember = true
        if connection.places.hasRoom { self.open.append(connection) }
    }

    /// An attempt has failed. Returns the exchanges to give up.
    ///
    /// If there is no connection, each failed attempt gives up one exchange, so that none waits for ever. The last one
    /// gives up all.
    mutating func attemptFailed() -> [Waiter] {
        self.attempts -= 1
        guard self.connectionCount == 0 else { return [] }
        guard self.attempts > 0 else { return self.removeAllWaiters() }
        guard self.queue.count > self.expected, let (entry, _) = self.queue.pop(of: { _ in true }) else { return [] }
        return [entry.waiter]
    }

    /// Changes a connection's number of places. Its exchanges continue.
    mutating func setLimit(_ limit: Int, of connection: Connection) {
        guard connection.places.isMember else { return }
        let hadRoom = connection.places.hasRoom
        self.places += limit - connection.places.limit
        connection.places.limit = limit
        self.expectedPlaces = max(1, limit)
        switch (hadRoom, connection.places.hasRoom) {
        case (false, true): self.open.append(connection)
        case (true, false): self.close(connection)
        case (true, true), (false, false): break
        }
    }

    /// Removes a connection that gets no more exchanges. `tenants` are those of its exchanges.
    mutating func retire(_ connection: Connection, carrying tenants: some Sequence<Int>) {
        guard connection.places.isMember else { return }
        self.close(connection)
        self.connectionCount -= 1
        self.places -= connection.places.limit
        self.taken -= connection.places.taken
        for tenant in tenants { self.shares.give(tenant) }
        connection.places = HTTPPoolPlaces(limit: connection.places.limit)
    }
}
