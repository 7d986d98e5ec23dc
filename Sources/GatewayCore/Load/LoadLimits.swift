/// How much a process takes on at once.
package struct LoadLimits: Sendable, Hashable {
    /// Requests in flight, each as many times as it has calls to FCM in flight.
    package let maxInFlight: Int
    /// The same of one tenant: half of all.
    package let maxInFlightPerTenant: Int
    /// What may be in flight while those without high priority are taken on: four in five of all.
    package let maxInFlightForNormal: Int
    /// Requests in flight below which a lag does not count: so few are served soon, however slow the machine is.
    package let maxInFlightBesideLag: Int
    /// How far an event loop may be behind.
    package let maxLag: Duration
    /// How far an event loop may be behind while requests without high priority are taken on: four fifths.
    package let maxLagForNormal: Duration

    /// Limits that follow from two.
    ///
    /// - Parameters:
    ///   - maxInFlight: what may be in flight, at least 1.
    ///   - maxLag: how far an event loop may be behind.
    package init(maxInFlight: Int, maxLag: Duration) {
        precondition(maxInFlight >= 1, "maxInFlight must be at least 1, not \(maxInFlight)")
        self.maxInFlight = maxInFlight
        self.maxInFlightPerTenant = max(1, maxInFlight / 2)
        self.maxInFlightForNormal = max(1, maxInFlight - maxInFlight / 5)
        self.maxInFlightBesideLag = min(64, maxInFlight / 4)
        self.maxLag = maxLag
        self.maxLagForNormal = maxLag * 4 / 5
    }
}
