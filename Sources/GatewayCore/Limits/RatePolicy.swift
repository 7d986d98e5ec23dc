/// A bound on how often something may happen: at most `burst + rate·t/period` times in any span t.
package struct RatePolicy: Sendable, Hashable {
    /// How many are replenished in one period; at least 1.
    package let rate: Int
    /// The period in whole seconds; at least 1.
    package let periodSeconds: Int
    /// How many may come at once; at least 1.
    package let burst: Int
    /// Nanoseconds between two events at the steady rate, rounded up so that the bound holds exactly.
    let interval: Int64

    /// The largest rate and burst; keeps all arithmetic within 64 bits.
    package static let maxCount = 1_000_000_000
    /// The longest period, in seconds: one day.
    package static let maxPeriodSeconds = 86_400

    /// Accepts a rate and a burst from 1 to ``maxCount`` and a period from 1 to ``maxPeriodSeconds``; anything else is
    /// `nil`.
    ///
    /// A refill that would take more than 30 days is refused too.
    package init?(rate: Int, periodSeconds: Int, burst: Int) {
        let counts = 1...Self.maxCount
        guard counts.contains(rate), counts.contains(burst), (1...Self.maxPeriodSeconds).contains(periodSeconds),
            burst * periodSeconds / rate <= 30 * 86_400
        else { return nil }
        self.init(checkedRate: rate, periodSeconds: periodSeconds, burst: burst)
    }

    private init(checkedRate rate: Int, periodSeconds: Int, burst: Int) {
        self.rate = rate
        self.periodSeconds = periodSeconds
        self.burst = burst
        self.interval = (Int64(periodSeconds) * 1_000_000_000 + Int64(rate) - 1) / Int64(rate)
    }

    /// FCM's documented ceilings for one device, kept in every window: 240 a minute and 5,000 an hour.
    package static let deviceDefaults = [
        RatePolicy(checkedRate: 180, periodSeconds: 60, burst: 60),
        RatePolicy(checkedRate: 4_000, periodSeconds: 3_600, burst: 1_000),
    ]
    /// Collapsible messages to one device: a burst of 20, then one every three minutes.
    package static let deviceCollapsibleDefaults = [RatePolicy(checkedRate: 1, periodSeconds: 180, burst: 20)]
    /// Messages to one topic.
    package static let topicDefaults = [RatePolicy(checkedRate: 900, periodSeconds: 60, burst: 100)]
    /// Messages of one tenant.
    package static let tenantDefaults = [RatePolicy(checkedRate: 9_000, periodSeconds: 1, burst: 9_000)]
}
