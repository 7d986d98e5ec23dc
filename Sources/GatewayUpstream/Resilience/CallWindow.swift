/// Counts calls and failures of the last ten seconds, in steps of one.
struct CallWindow {
    private struct Second {
        var number = Int64.min
        var calls = 0
        var failures = 0
    }

    private static let length = 10
    private static let origin = ContinuousClock.now

    private var seconds = Array(repeating: Second(), count: Self.length)

    /// Counts a call.
    mutating func add(isFailure: Bool, at now: ContinuousClock.Instant) {
        let number = Self.number(of: now)
        let index = Int(number.magnitude % UInt64(Self.length))
        if self.seconds[index].number != number { self.seconds[index] = Second(number: number) }
        self.seconds[index].calls += 1
        if isFailure { self.seconds[index].failures += 1 }
    }

    /// The calls, and how many of them failed.
    func counts(at now: ContinuousClock.Instant) -> (calls: Int, failures: Int) {
        let oldest = Self.number(of: now) - Int64(Self.length)
        return self.seconds.reduce(into: (0, 0)) { sum, second in
            guard second.number > oldest else { return }
            sum.0 += second.calls
            sum.1 += second.failures
        }
    }

    private static func number(of instant: ContinuousClock.Instant) -> Int64 {
        Self.origin.duration(to: instant).components.seconds
    }
}
