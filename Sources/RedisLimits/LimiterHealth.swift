/// Decides if limits are shared in Redis, or applied without it while it fails.
///
///     shared ─ 3 more failures than answers ─► doubted ─ probe fails ─► fallback
///        ▲                                        │                        │
///        └───────────── probe answered ───────────┴── 4 probes in a row ───┘
///
/// Pure. A decision without an answer in time may have waited only behind commands of this process. So three of them
/// raise a doubt, and one probe on a separate connection settles it. In the fallback only probes test Redis, because
/// each request would wait for its whole timeout.
struct LimiterHealth: Sendable, Equatable {
    private enum Phase: Equatable {
        /// Redis decides. `failures` counts decisions without an answer, minus those with one. Next: `doubted`,
        /// `fallback`.
        case shared(failures: Int)
        /// Redis decides, and a probe tests if it answers. Next: `shared`, `fallback`.
        case doubted
        /// Only probes ask Redis. `answers` counts consecutive answered probes. Next: `shared`.
        case fallback(answers: Int)
    }

    /// A change of state by a probe.
    enum Change: Equatable {
        case failed
        case recovered
    }

    /// A single failure may be a slow moment. An answer makes up for one failure only: a server that answers one
    /// decision in three never fails three in a row.
    static let maxFailures = 3
    /// Nearly a second of probes. Each time limits stop being shared, a burst passes.
    static let goodProbes = 4

    private var phase = Phase.shared(failures: 0)

    var isShared: Bool {
        switch self.phase {
        case .shared, .doubted: true
        case .fallback: false
        }
    }

    /// Counts a decision. Returns true if Redis is now in doubt, so that the caller must probe it.
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

    /// Redis is known to fail, as at a start without it. Returns true if it was shared before.
    mutating func fail() -> Bool {
        defer { self.phase = .fallback(answers: 0) }
        return self.isShared
    }
}
