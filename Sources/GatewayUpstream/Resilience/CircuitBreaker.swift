import GatewayCore

/// Stops calls to a server in trouble, and detects when it has recovered.
///
/// Pure: the caller supplies the time.
///
///     closed --failures--> resting --time over--> probing --healthy--> ramping --ramp over--> closed
///                             ^                      |                    |
///                             +------- trouble ------+------ trouble -----+
///
/// It opens after a number of failures in a row, or when at least half of enough recent calls failed. The rest doubles
/// with every relapse. Then one probe goes through; if it succeeds, a growing share of calls follows.
struct CircuitBreaker {
    /// Counts calls and failures of the last ten seconds, in steps of one second.
    private struct Window {
        private struct Second {
            var number = Int64.min
            var calls = 0
            var failures = 0
        }

        private static let length = 10
        private static let origin = Uptime.now

        private var seconds = Array(repeating: Second(), count: Self.length)

        mutating func add(isFailure: Bool, at now: Uptime) {
            let number = Self.number(of: now)
            let index = Int(number.magnitude % UInt64(Self.length))
            if self.seconds[index].number != number { self.seconds[index] = Second(number: number) }
            self.seconds[index].calls += 1
            if isFailure { self.seconds[index].failures += 1 }
        }

        func counts(at now: Uptime) -> (calls: Int, failures: Int) {
            let oldest = Self.number(of: now) - Int64(Self.length)
            return self.seconds.reduce(into: (0, 0)) { sum, second in
                guard second.number > oldest else { return }
                sum.0 += second.calls
                sum.1 += second.failures
            }
        }

        private static func number(of instant: Uptime) -> Int64 {
            Self.origin.duration(to: instant).nanoseconds / 1_000_000_000
        }
    }

    enum Permit: Equatable {
        /// The caller must report the call's end.
        case granted
        case refused(wait: Duration)
    }

    /// A call's result, as far as it concerns the server's health.
    enum Verdict {
        /// The server answered, whatever the answer.
        case healthy
        /// The server is unreachable, too slow, or reports trouble.
        case trouble
        /// The connection was lost with all its calls; of calls lost at one moment, one counts.
        case lost
        /// The call says nothing about the server.
        case silent
    }

    /// The value in metrics.
    enum Condition: Int {
        case closed = 0
        /// Some calls go through: a probe, or a growing share.
        case halfOpen = 1
        case open = 2
    }

    typealias Instant = Uptime

    private enum Phase {
        /// Next: `resting`.
        case closed
        /// Next: `probing`.
        case resting(until: Instant)
        /// One probe is under way. Next: `ramping`, `resting`; or `probing` again if its end is never reported.
        case probing(since: Instant)
        /// Some calls go through. Next: `closed`, `resting`.
        case ramping(since: Instant)
    }

    private static let failuresInARow = 5
    private static let fewestCalls = 20
    private static let firstRest = Duration.seconds(30)
    private static let longestRest = Duration.seconds(300)
    /// A probe that has not been reported after this long counts as abandoned.
    private static let probeTimeout = Duration.seconds(15)
    private static let rampTime = Duration.seconds(10)
    /// Calls lost within this time count as lost at one moment.
    private static let moment = Duration.milliseconds(100)

    private var phase = Phase.closed
    private var recent = Window()
    private var row = 0
    private var lostAt: Instant?
    /// The number of openings since it last closed.
    private var relapses = 0
    /// The part of a call that the ramp has saved up, 0 to 1.
    private var credit = 0.0

    var condition: Condition {
        switch self.phase {
        case .closed: .closed
        case .probing, .ramping: .halfOpen
        case .resting: .open
        }
    }

    mutating func permit(at now: Instant) -> Permit {
        switch self.phase {
        case .closed:
            return .granted
        case .resting(let end):
            guard now >= end else { return .refused(wait: now.duration(to: end)) }
            self.phase = .probing(since: now)
            return .granted
        case .probing(let start):
            guard now >= start.advanced(by: Self.probeTimeout) else { return .refused(wait: .seconds(1)) }
            self.phase = .probing(since: now)
            return .granted
        case .ramping(let start):
            let share = start.duration(to: now) / Self.rampTime
            guard share < 1 else {
                (self.phase, self.relapses, self.recent, self.row) = (.closed, 0, Window(), 0)
                return .granted
            }
            self.credit += max(0.1, share)
            guard self.credit >= 1 else { return .refused(wait: .seconds(1)) }
            self.credit -= 1
            return .granted
        }
    }

    /// Notes a call's result; returns true if it opened the breaker.
    mutating func report(_ verdict: Verdict, at now: Instant) -> Bool {
        switch verdict {
        case .silent:
            // The next call becomes the probe.
            if case .probing = self.phase { self.phase = .resting(until: now) }
            return false
        case .healthy:
            self.row = 0
            self.recent.add(isFailure: false, at: now)
            if case .probing = self.phase {
                self.phase = .ramping(since: now)
                self.credit = 0
            }
            return false
        case .lost:
            if let lostAt = self.lostAt, now < lostAt.advanced(by: Self.moment), self.countsMoments { return false }
            self.lostAt = now
            return self.noteTrouble(at: now)
        case .trouble:
            return self.noteTrouble(at: now)
        }
    }

    /// True if many calls go through, so that losses at one moment count once; a lone probe always counts.
    private var countsMoments: Bool {
        switch self.phase {
        case .closed, .ramping: true
        case .resting, .probing: false
        }
    }

    private mutating func noteTrouble(at now: Instant) -> Bool {
        self.row += 1
        self.recent.add(isFailure: true, at: now)
        switch self.phase {
        case .resting(let end) where now < end:
            // The call had begun before the breaker opened.
            return false
        case .resting, .probing:
            break
        case .closed, .ramping:
            let (calls, failures) = self.recent.counts(at: now)
            let isBad = calls >= Self.fewestCalls && failures * 2 >= calls
            guard self.row >= Self.failuresInARow || isBad else { return false }
        }
        let rest = min(Self.firstRest * (1 << min(self.relapses, 8)), Self.longestRest)
        self.relapses += 1
        self.phase = .resting(until: now.advanced(by: rest))
        self.recent = Window()
        self.row = 0
        return true
    }
}
