/// Decides whether limits are kept in Redis or, while it fails, without it.
///
/// Pure. Requests never find out whether Redis is back, since each that asks in vain waits for as long as it may;
/// probes beside them do. What was asked before has no say either, as a slow server still answers some of it in time.
struct LimiterHealth: Sendable, Equatable {
    private enum Phase: Equatable {
        /// Redis is asked; so many decisions more had no answer than had one. Next: `fallback`.
        case shared(failures: Int)
        /// Only probes ask Redis; so many in a row had an answer. Next: `shared`.
        case fallback(answers: Int)
    }

    /// One alone may be a slow moment. An answer makes up for one failure only: a server that answers one decision of
    /// three never fails three in a row.
    static let maxFailures = 3
    /// Most of a second of them: each time that limits stop being shared lets a burst through.
    static let goodProbes = 4

    private var phase = Phase.shared(failures: 0)

    var isShared: Bool {
        switch self.phase {
        case .shared: true
        case .fallback: false
        }
    }

    /// A decision had its answer, or none; whether limits are no longer shared by that.
    mutating func decided(isAnswered: Bool) -> Bool {
        guard case .shared(let failures) = self.phase else { return false }
        let count = isAnswered ? max(0, failures - 1) : failures + 1
        let isOver = count >= Self.maxFailures
        self.phase = isOver ? .fallback(answers: 0) : .shared(failures: count)
        return isOver
    }

    /// A probe had its answer, or none; whether limits are shared again by that.
    mutating func probed(isAnswered: Bool) -> Bool {
        guard case .fallback(let answers) = self.phase else { return false }
        let count = isAnswered ? answers + 1 : 0
        let isBack = count >= Self.goodProbes
        self.phase = isBack ? .shared(failures: 0) : .fallback(answers: count)
        return isBack
    }
}
