import Synchronization

/// Counts the bytes of all request bodies that a server holds, and bounds them.
///
/// Never locked: it is touched for every request that has a body.
final class HTTPBodyGauge: Sendable {
    private let limit: Int
    private let held = Atomic(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// Bytes held now.
    var heldBytes: Int {
        self.held.load(ordering: .relaxed)
    }

    /// Whether that many more bytes would fit now.
    func hasRoom(for byteCount: Int) -> Bool {
        byteCount <= self.limit - self.heldBytes
    }

    /// Counts bytes that have arrived, unless they are too many.
    ///
    /// - Returns: whether they are counted; if so, they have to be released.
    func hold(_ byteCount: Int) -> Bool {
        guard self.held.add(byteCount, ordering: .relaxed).newValue <= self.limit else {
            self.release(byteCount)
            return false
        }
        return true
    }

    /// Bytes that were counted are gone.
    func release(_ byteCount: Int) {
        self.held.subtract(byteCount, ordering: .relaxed)
    }
}
