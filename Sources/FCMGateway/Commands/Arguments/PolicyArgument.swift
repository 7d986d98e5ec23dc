import ArgumentParser
import FCMModel
import GatewayCore

/// A rate policy as an option takes it: `RATE/PERIOD:BURST`, such as `180/60s:60`.
struct PolicyArgument: Sendable, Equatable, ExpressibleByArgument {
    let rate: Int
    let periodSeconds: Int
    let burst: Int

    /// Accepts a policy within the ranges that configuration has too.
    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let rest = parts[1].split(separator: ":", omittingEmptySubsequences: false)
        guard rest.count == 2, let rate = Int(digits: parts[0]),
            let period = DurationArgument(argument: String(rest[0])), let burst = Int(digits: rest[1])
        else { return nil }
        let counts = 1...RatePolicy.maxCount
        guard counts.contains(rate), (1...RatePolicy.maxPeriodSeconds).contains(period.seconds), counts.contains(burst)
        else { return nil }
        self.rate = rate
        self.periodSeconds = period.seconds
        self.burst = burst
    }

    /// The policy as the admin API writes it.
    var json: JSONValue {
        .object([
            "rate": .integer(self.rate),
            "per_s": .integer(self.periodSeconds),
            "burst": .integer(self.burst),
        ])
    }
}
