import Synchronization

/// Counts the bytes that are held of messages on their way, and bounds them: of a server's requests, or of the answers
/// that pools collect.
///
/// Never locked: it is touched for every request that has a body.
package final class HTTPBodyGauge: Sendable {
    /// The most bytes that may be held.
    let limit: Int
    private let held = Atomic(0)

    /// Counts from nothing, up to a limit in bytes.
    package init(limit: Int) {
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
