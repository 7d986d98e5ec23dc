import ArgumentParser
import FCMModel
import GatewayService

/// A rate policy as an option takes it: `RATE/PERIOD:BURST`, such as `180/60s:60`.
struct PolicyArgument: Sendable, Equatable, ExpressibleByArgument {
    /// The policy.
    let policy: RatePolicyConfiguration

    /// Accepts a policy within the ranges that configuration has too.
    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let rest = parts[1].split(separator: ":", omittingEmptySubsequences: false)
        guard rest.count == 2, let rate = Int(digits: parts[0]),
            let period = DurationArgument(argument: String(rest[0])), let burst = Int(digits: rest[1])
        else { return nil }
        let policy = RatePolicyConfiguration(rate: rate, perS: period.seconds, burst: burst)
        guard policy.rangeProblem == nil else { return nil }
        self.policy = policy
    }

    /// The policy as the admin API writes it.
    var json: JSONValue {
        .object([
            "rate": .integer(self.policy.rate),
            "per_s": .integer(self.policy.perS),
            "burst": .integer(self.policy.burst),
        ])
    }
}
