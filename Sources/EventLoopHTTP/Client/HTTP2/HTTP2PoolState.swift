import NIOCore

/// Which stream of which connection carries which exchange, and when another connection is needed, on one event loop.
///
/// Pure: it opens and closes nothing. A burst of exchanges makes as many attempts to connect as it needs connections at
/// the number of streams seen last, and a single one while that number is unknown.
struct HTTP2PoolState<Connection: AnyObject, Waiter: AnyObject> {
    enum Admission {
        /// Use a stream of this connection; it is counted.
        case start(Connection)
        /// No stream is free, or none for the tenant; the exchange is queued, and another has lost its place to it.
        case wait(displacing: Waiter?)
        /// As before, and the queue is full.
        case exhausted
    }

    private struct Member {
        let connection: Connection
        var limit: Int
        var streams = 0

        var hasRoom: Bool { self.streams < self.limit }
    }

    private struct Entry {
        let waiter: Waiter
        /// The connection that has refused the exchange, which another should carry.
        let avoided: Connection?
    }

    private let maxConnections: Int
    private let maxWaiters: Int
    private var members: [Member] = []
    private var queue = HTTPTenantQueue<Entry>()
    private var shares = HTTPTenantShares()
    /// Streams of all members.
    private var streams = 0
    /// Streams that all connections may have that there may be, as far as is known.
    private var capacity = 0
    /// Streams a new connection is expected to have; nil until there has been one.
    private var expectedStreams: Int?
    /// Attempts under way.
    private(set) var attempts = 0

    init(maxConnections: Int, maxWaiters: Int) {
        precondition(maxConnections > 0, "A pool needs room for a connection, not \(maxConnections).")
        self.maxConnections = maxConnections
        self.maxWaiters = maxWaiters
    }

    var connectionCount: Int { self.members.count }
    var waiterCount: Int { self.queue.count }

    // MARK: Exchanges

    /// Decides how an exchange gets its stream.
    ///
    /// The oldest connection with room is preferred, so that those a burst has left behind become idle.
    ///
    /// - Parameters:
    ///   - waiter: the exchange.
    ///   - tenant: whose it is.
    ///   - avoided: the connection that has refused it, used again only where there can be no other.
    /// - Returns: the connection to start it on, or what becomes of it instead.
    mutating func admit(_ waiter: Waiter, of tenant: Int, avoiding avoided: Connection? = nil) -> Admission {
        if self.shares.mayTake(tenant, free: self.free) {
            if let index = self.members.firstIndex(where: { $0.hasRoom && $0.connection !== avoided }) {
                return .start(self.startStream(of: tenant, on: index))
            }
            if let avoided, !self.mayHaveAnother, let index = self.index(of: avoided), self.members[index].hasRoom {
                return .start(self.startStream(of: tenant, on: index))
            }
        }
        var displaced: Entry?
        if self.queue.count >= self.maxWaiters {
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

    /// Takes the next exchange off the queue for which there is a stream, and counts the stream.
    mutating func next() -> (Waiter, Connection)? {
        guard !self.queue.isEmpty else { return nil }
        let (shares, free) = (self.shares, self.free)
        for index in self.members.indices where self.members[index].hasRoom {
            let connection = self.members[index].connection
            let next = self.queue.pop(of: { shares.mayTake($0, free: free) }, where: { $0.avoided !== connection })
            if let (entry, tenant) = next {
                return (entry.waiter, self.startStream(of: tenant, on: index))
            }
        }
        // All that wait were refused where there is room. They go back only if nothing else is to come.
        guard self.attempts == 0, let index = self.members.firstIndex(where: \.hasRoom),
            let (entry, tenant) = self.queue.pop(of: { shares.mayTake($0, free: free) })
        else { return nil }
        return (entry.waiter, self.startStream(of: tenant, on: index))
    }

    private mutating func startStream(of tenant: Int, on index: Int) -> Connection {
        self.members[index].streams += 1
        self.streams += 1
        self.shares.take(tenant)
        return self.members[index].connection
    }

    /// Frees a stream.
    mutating func streamEnded(on connection: Connection, of tenant: Int) {
        guard let index = self.index(of: connection) else { return }
        self.members[index].streams -= 1
        self.streams -= 1
        self.shares.give(tenant)
    }

    /// Streams that there could be besides.
    private var free: Int { self.capacity - self.streams }

    private mutating func recount() {
        self.streams = self.members.reduce(0) { $0 + $1.streams }
        self.capacity = self.members.reduce((self.maxConnections - self.members.count) * (self.expectedStreams ?? 0)) {
            $0 + $1.limit
        }
    }

    /// Removes an exchange that waits no longer.
    mutating func remove(_ waiter: Waiter, of tenant: Int) {
        self.queue.remove(of: tenant) { $0.waiter === waiter }
    }

    /// Empties the queue.
    mutating func removeAllWaiters() -> [Waiter] {
        self.queue.removeAll().map(\.waiter)
    }

    // MARK: Connections

    /// Decides whether another connection has to be opened for the exchanges that wait, and counts the attempt.
    mutating func shouldConnect() -> Bool {
        guard self.members.count + self.attempts < self.maxConnections else { return false }
        let expected =
            if let expectedStreams { self.attempts * max(1, expectedStreams) } else { self.attempts * self.maxWaiters }
        guard self.queue.count > expected else { return false }
        self.attempts += 1
        return true
    }

    /// An attempt has led to a connection.
    mutating func connected(_ connection: Connection, streams limit: Int) {
        self.attempts -= 1
        self.adopt(connection, streams: limit)
    }

    /// Takes a connection in that no attempt was counted for.
    mutating func adopt(_ connection: Connection, streams limit: Int) {
        self.members.append(Member(connection: connection, limit: limit))
        self.expectedStreams = limit
        self.recount()
    }

    /// An attempt has led to something else.
    mutating func attemptEnded() {
        self.attempts -= 1
    }

    /// An attempt has failed.
    ///
    /// - Returns: the exchanges to give up: all, once no connection is left that could ever serve them.
    mutating func attemptFailed() -> [Waiter] {
        self.attempts -= 1
        return self.attempts == 0 && self.members.isEmpty ? self.removeAllWaiters() : []
    }

    /// A connection's peer allows another number of streams from now on; those it has go on.
    mutating func setLimit(_ limit: Int, of connection: Connection) {
        guard let index = self.index(of: connection) else { return }
        self.members[index].limit = limit
        self.expectedStreams = limit
        self.recount()
    }

    /// Takes a connection out that carries no more exchanges.
    ///
    /// - Parameters:
    ///   - connection: the connection.
    ///   - tenants: the tenant of each of its streams.
    mutating func retire(_ connection: Connection, carrying tenants: some Sequence<Int>) {
        guard let index = self.index(of: connection) else { return }
        self.members.remove(at: index)
        for tenant in tenants { self.shares.give(tenant) }
        self.recount()
    }

    private var mayHaveAnother: Bool {
        self.attempts > 0 || self.members.count < self.maxConnections
    }

    private func index(of connection: Connection) -> Int? {
        self.members.firstIndex { $0.connection === connection }
    }
}
