/// The times at which one tenant's batches may send from this replica. Pure.
///
/// - The *limit* is the rate that the tenant's quota leaves to the batches of one replica, in recipients per second. It
///   may change at any time.
/// - After a rest of a minute, the rate begins at a sixtieth of the limit, or at 100/s if that is more, and rises to the
///   limit within a minute. Google asks for such a *ramp* of at least 60 s. A limit below 100/s has none.
/// - After a *setback*, FCM's 429 for the whole project, nothing leaves until the given moment. The limit then counts
///   half, recovers by a six-hundredth per second, and the ramp begins again.
///
/// Example: a limit of 4,000/s. The first second sends 100, the 30th about 2,000, the 60th 4,000. A 429 in the 100th
/// second that asks for a minute stops it until the 160th. It begins with 100/s again, sends at about 2,400/s in the
/// 220th second, and at 4,000/s in the 460th.
struct Pacer: Sendable {
    private static let rest = Duration.seconds(60)
    private static let ramp = Duration.seconds(60)
    private static let recovery = Duration.seconds(600)
    /// The rate that needs no ramp, in recipients per second.
    private static let harmlessRate = 100.0
    /// A slice holds the recipients of this time.
    private static let sliceSeconds = 2.0

    /// A pause of everything that uses one project of FCM.
    struct Setback: Sendable, Hashable {
        let end: Uptime
        /// The part of the limit that counts at its end.
        let factor: Double
    }

    /// The beginning of the ramp; `nil` before anything was sent.
    private var rampStart: Uptime?
    /// The moment before which nothing may leave.
    private var next: Uptime?
    private(set) var setback: Setback?

    /// The least factor, however many setbacks follow each other.
    private static let leastFactor = 1.0 / 16

    /// Returns the factor of a new setback: half of what counts now.
    func halvedFactor(at now: Uptime) -> Double { self.factor(at: now) / 2 }

    /// Takes a setback that this replica or another one has met. One that ends no later than the known one is no news.
    mutating func take(_ setback: Setback) {
        guard self.setback.map({ $0.end < setback.end }) ?? true else { return }
        self.setback = setback
        self.rampStart = setback.end
    }

    /// Returns the number of recipients to take next, 1 to `maximum`: those of two seconds, or of one second if they leave
    /// in one call.
    func sliceSize(
        limit: Double,
        atMost maximum: Int,
        inOneCall: Bool = false,
        at now: Uptime
    ) -> Int {
        let count = self.rate(limit: limit, at: now) * (inOneCall ? 1 : Self.sliceSeconds)
        return max(1, Int(min(Double(maximum), count)))
    }

    /// Reserves the next departure of a call. Returns its moment.
    ///
    /// A list counts as a full slice, even if it has fewer recipients: no second then has more recipients than the rate.
    mutating func departure(of count: Int, limit: Double, at now: Uptime) -> Uptime {
        let start = self.start(at: now)
        let rampStart = self.isRested(at: start) ? start : self.rampStart ?? start
        self.rampStart = rampStart
        let rate = self.rate(limit: limit, rampStart, at: start)
        // So that no second has more than the rate: as many whole calls as fit into one, and a nanosecond for rounding.
        let calls = rate / Double(count)
        self.next = start + .seconds(1 / (calls < 1 ? calls : calls.rounded(.down))) + .nanoseconds(1)
        return start
    }

    /// The time until the next call may leave.
    func delay(at now: Uptime) -> Duration { self.start(at: now) - now }

    /// The recipients per second at the next departure.
    func rate(limit: Double, at now: Uptime) -> Double {
        let start = self.start(at: now)
        return self.rate(limit: limit, self.isRested(at: start) ? start : self.rampStart ?? start, at: start)
    }

    private func start(at now: Uptime) -> Uptime {
        max(now, self.next ?? now, self.setback?.end ?? now)
    }

    private func isRested(at moment: Uptime) -> Bool {
        guard let next = self.next else { return true }
        return moment - next >= Self.rest
    }

    private func factor(at moment: Uptime) -> Double {
        guard let setback = self.setback else { return 1 }
        return min(1, max(Self.leastFactor, setback.factor) + max(.zero, moment - setback.end) / Self.recovery)
    }

    private func rate(
        limit: Double,
        _ rampStart: Uptime,
        at moment: Uptime
    ) -> Double {
        let full = limit * self.factor(at: moment)
        let first = max(full / 60, min(full, Self.harmlessRate))
        return first + (full - first) * min(1, max(.zero, moment - rampStart) / Self.ramp)
    }
}
