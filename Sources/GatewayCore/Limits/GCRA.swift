/// The generic cell rate algorithm (ITU-T I.371): one number for each counted thing.
///
/// That number, the theoretical arrival time, says when the bucket will be full again. All times are nanoseconds since
/// 1970 on the wall clock; a clock that steps costs at most one burst, because a stored time that only a step can have
/// put so far ahead counts as now plus a full burst.
struct GCRA: Sendable {
    /// How far threads that read the clock one after the other may seem to run backwards, in nanoseconds: one second.
    ///
    /// Within it a stored time stands. Were it cut to each reader's own now, every late thread would win a little quota.
    static let stepTolerance: Int64 = 1_000_000_000

    private let interval: Int64
    private let refill: Int64

    init(_ policy: RatePolicy) {
        self.interval = policy.interval
        self.refill = policy.interval * Int64(policy.burst)
    }

    /// The arrival time to reckon with: not before now, and a full burst from now where the clock was set back.
    func effective(_ arrival: Int64, at now: Int64) -> Int64 {
        arrival > now + self.refill + Self.stepTolerance ? now + self.refill : max(arrival, now)
    }

    /// How many events fit at this moment.
    func available(_ arrival: Int64, at now: Int64) -> Int {
        max(0, Int((self.refill - (self.effective(arrival, at: now) - now)) / self.interval))
    }

    /// The arrival time after so many events; the caller has made sure that they fit.
    func charged(_ arrival: Int64, _ count: Int, at now: Int64) -> Int64 {
        self.effective(arrival, at: now) + Int64(count) * self.interval
    }

    /// The arrival time after events that were charged and did not happen.
    func refunded(_ arrival: Int64, _ count: Int) -> Int64 {
        arrival - Int64(count) * self.interval
    }

    /// Nanoseconds until one more event fits; 0 if it fits now.
    func waitForOne(_ arrival: Int64, at now: Int64) -> Int64 {
        max(0, self.effective(arrival, at: now) + self.interval - self.refill - now)
    }

    /// Nanoseconds until the bucket is full.
    func waitUntilFull(_ arrival: Int64, at now: Int64) -> Int64 {
        self.effective(arrival, at: now) - now
    }
}
