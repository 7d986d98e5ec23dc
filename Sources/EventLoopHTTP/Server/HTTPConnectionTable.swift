import NIOCore

/// The open connections of one event loop, and which of them to give up for a new one.
///
/// Pure: it closes nothing. Requests do not touch it, so it does not know who idles: the one that has idled longest is looked
/// for when it is needed, among a bounded number of connections, and each search goes on where the last one ended. That is
/// how Redis chooses keys to evict, and nearly as good as an order that every request would have to keep.
struct HTTPConnectionTable<Connection: AnyObject> {
    /// Connections that a search looks at: few enough to cost less than accepting one.
    private let searchLength: Int
    private(set) var connections: [Connection] = []
    private var indices: [ObjectIdentifier: Int] = [:]
    /// Where the next search begins.
    private var position = 0

    init(searchLength: Int = 256) {
        self.searchLength = searchLength
    }

    mutating func add(_ connection: Connection) {
        self.indices[ObjectIdentifier(connection)] = self.connections.count
        self.connections.append(connection)
    }

    /// Takes a connection out; another takes its place in the order.
    mutating func remove(_ connection: Connection) {
        guard let index = self.indices.removeValue(forKey: ObjectIdentifier(connection)),
            let last = self.connections.popLast(), last !== connection
        else { return }
        self.connections[index] = last
        self.indices[ObjectIdentifier(last)] = index
    }

    /// Finds the connection that has idled longest, of those that the search looks at.
    ///
    /// - Parameter idleSince: when a connection began to idle; nil for one that must not be given up.
    /// - Returns: the connection; nil if there is none to give up.
    mutating func longestIdle(by idleSince: (Connection) -> NIODeadline?) -> Connection? {
        var longest: (connection: Connection, since: NIODeadline)?
        for _ in 0..<min(self.searchLength, self.connections.count) {
            if self.position >= self.connections.count { self.position = 0 }
            let connection = self.connections[self.position]
            self.position += 1
            guard let since = idleSince(connection), since < longest?.since ?? .distantFuture else { continue }
            longest = (connection, since)
        }
        return longest?.connection
    }
}
