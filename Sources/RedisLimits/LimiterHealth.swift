/// Decides whether limits are kept in Redis or, while it fails, without it.
///
/// Pure. A decision that gets no answer in time may have waited behind commands of this process alone. Three of them are
/// therefore a doubt, which one probe on a connection of its own settles. Requests never find out whether Redis is back,
/// since each would wait as long as it may; probes beside them do.
struct LimiterHealth: Sendable, Equatable {
    private enum Phase: Equatable {
        /// Redis is asked; so many decisions more had no answer than had one. Next: `doubted`, `fallback`.
        case shared(failures: Int)
        /// Redis is asked, and a probe finds out whether it answers. Next: `shared`, `fallback`.
        case doubted
        /// Only probes ask Redis; so many in a row had an answer. Next: `shared`.
        case fallback(answers: Int)
    }

    /// What a probe has changed.
    enum Change: Equatable {
        case failed
        case recovered
    }

    /// One alone may be a slow moment. An answer makes up for one failure only: a server that answers one decision of
    /// three never fails three in a row.
    static let maxFailures = 3
    /// Most of a second of them: each time that limits stop being shared lets a burst through.
    static let goodProbes = 4

    private var phase = Phase.shared(failures: 0)

    var isShared: Bool {
        switch self.phase {
        case .shared, .doubted: true
        case .fallback: false
        }
    }

    /// Counts a decision; true if Redis is now in doubt, so that the caller has to probe it.
    mutating func decided(isAnswered: Bool) -> Bool {
        guard case .shared(let failures) = self.phase else { return false }
        let count = isAnswered ? max(0, failures - 1) : failures + 1
        let isOver = count >= Self.maxFailures
        self.phase = isOver ? .doubted : .shared(failures: count)
        return isOver
    }

    mutating func probed(isAnswered: Bool) -> Change? {
        switch self.phase {
        case .shared:
            return nil
        case .doubted:
            self.phase = isAnswered ? .shared(failures: 0) : .fallback(answers: 0)
            return isAnswered ? nil : .failed
        case .fallback(let answers):
            let count = isAnswered ? answers + 1 : 0
            let isBack = count >= Self.goodProbes
            self.phase = isBack ? .shared(failures: 0) : .fallback(answers: count)
            return isBack ? .recovered : nil
        }
    }

    /// Redis is known to fail, as at a start without it; true if that is news.
    mutating func fail() -> Bool {
        defer { self.phase = .fallback(answers: 0) }
        return self.isShared
    }
}
