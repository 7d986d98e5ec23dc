/// Decides whether limits are kept in Redis or, while it fails, without it.
///
/// Pure. Requests never find out whether Redis is back, since each that asks in vain waits for as long as it may: a probe
/// beside them does.
struct LimiterHealth: Sendable, Equatable {
    private enum Phase: Equatable {
        /// Redis is asked. Next: `fallback`.
        case shared(failures: Int)
        /// Redis is not asked. Next: `shared`.
        case fallback
    }

    /// So many in a row; one alone may be a slow moment.
    static let failuresInARow = 3

    private var phase = Phase.shared(failures: 0)

    var isShared: Bool {
        switch self.phase {
        case .shared: true
        case .fallback: false
        }
    }

    /// A decision or a probe had its answer; whether limits are shared again by that.
    mutating func succeeded() -> Bool {
        defer { self.phase = .shared(failures: 0) }
        return !self.isShared
    }

    /// A decision or a probe had no answer; whether limits are no longer shared by that.
    mutating func failed() -> Bool {
        guard case .shared(let failures) = self.phase else { return false }
        let isOver = failures + 1 >= Self.failuresInARow
        self.phase = isOver ? .fallback : .shared(failures: failures + 1)
        return isOver
    }
}
