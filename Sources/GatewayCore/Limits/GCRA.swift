/// The generic cell rate algorithm (ITU-T I.371): one number for each counted thing.
///
/// The number is the *theoretical arrival time*, at which the bucket is full again. All times are nanoseconds since 1970 on
/// the wall clock. A clock that steps costs at most one burst: a stored time that only a step can have put so far ahead counts
/// as now plus a full burst.
///
/// Example: a policy of `60/60s:10` has an interval of 1 s. After four events at 12:00:00 the arrival time is 12:00:04, and
/// six more events fit.
struct GCRA: Sendable {
    /// The difference up to which clock readings of several threads count as equal, in nanoseconds: one second.
    ///
    /// Within it a stored time is kept. Limiting it to each reader's own now would give every late thread a little quota.
    static let stepTolerance: Int64 = 1_000_000_000

    private let interval: Int64
    private let burst: Int64

    init(_ policy: RatePolicy) {
        self.interval = policy.interval
        self.burst = Int64(policy.burst)
    }

    private var refill: Int64 { self.interval * self.burst }

    /// Returns the arrival time to use: at least now, and at most a full burst from now if the clock was set back.
    func effective(_ arrival: Int64, at now: Int64) -> Int64 {
        arrival > now + self.refill + Self.stepTolerance ? now + self.refill : max(arrival, now)
    }

    func available(_ arrival: Int64, at now: Int64) -> Int {
        max(0, Int((self.refill - (self.effective(arrival, at: now) - now)) / self.interval))
    }

    /// Returns the arrival time after so many events. The caller has checked that they fit.
    func charged(_ arrival: Int64, _ count: Int, at now: Int64) -> Int64 {
        self.effective(arrival, at: now) + Int64(count) * self.interval
    }

    func refunded(_ arrival: Int64, _ count: Int) -> Int64 {
        arrival - Int64(count) * self.interval
    }

    /// Returns the nanoseconds until so many events fit at once, or until the bucket is full if they exceed the burst. 0 if
    /// they fit now.
    func wait(_ arrival: Int64, for count: Int = 1, at now: Int64) -> Int64 {
        let needed = self.interval * min(Int64(count), self.burst)
        return max(0, self.effective(arrival, at: now) + needed - self.refill - now)
    }

    func waitUntilFull(_ arrival: Int64, at now: Int64) -> Int64 {
        self.effective(arrival, at: now) - now
    }
}

/// One key's use of the policies of a scope.
package struct LimitBucket: Sendable {
    /// An arrival time for each policy, in order. The rest is unused.
    var arrivals: SIMD4<Int64>
    /// The policies, all of which must admit an event.
    let policies: [RatePolicy]

    init(arrivals: SIMD4<Int64>, policies: [RatePolicy]) {
        self.arrivals = arrivals
        self.policies = policies
    }

    /// Takes an arrival time for each policy, in nanoseconds since 1970. A missing one means a full bucket.
    package init(arrivals: [Int64], policies: [RatePolicy]) {
        self.init(arrivals: .zero, policies: policies)
        for (index, arrival) in arrivals.prefix(policies.count).enumerated() { self.arrivals[index] = arrival }
    }

    package func quotas(at now: Timestamp) -> [QuotaStatus] { self.quotas(at: now.microseconds * 1_000) }

    /// Returns the nanoseconds until so many events fit at once under every policy, or until it is full.
    package func wait(for count: Int = 1, at now: Timestamp) -> Int64 {
        self.wait(for: count, at: now.microseconds * 1_000)
    }

    func available(upTo count: Int, at now: Int64) -> Int {
        self.policies.indices.reduce(count) { min($0, GCRA(self.policies[$1]).available(self.arrivals[$1], at: now)) }
    }

    /// Charges events. The caller has checked that they fit.
    mutating func charge(_ count: Int, at now: Int64) {
        for index in self.policies.indices {
            self.arrivals[index] = GCRA(self.policies[index]).charged(self.arrivals[index], count, at: now)
        }
    }

    mutating func refund(_ count: Int) {
        for index in self.policies.indices {
            self.arrivals[index] = GCRA(self.policies[index]).refunded(self.arrivals[index], count)
        }
    }

    func wait(for count: Int = 1, at now: Int64) -> Int64 {
        self.policies.indices.reduce(0) {
            max($0, GCRA(self.policies[$1]).wait(self.arrivals[$1], for: count, at: now))
        }
    }

    func quotas(at now: Int64) -> [QuotaStatus] {
        self.policies.indices.map { index in
            let (gcra, arrival) = (GCRA(self.policies[index]), self.arrivals[index])
            let remaining = gcra.available(arrival, at: now)
            let wait = remaining > 0 ? gcra.waitUntilFull(arrival, at: now) : gcra.wait(arrival, at: now)
            return QuotaStatus(
                policy: self.policies[index],
                remaining: remaining,
                resetSeconds: LimitTable.seconds(wait)
            )
        }
    }
}
