import GatewayCore
import GatewayTestKit

extension RatePolicy {
    /// A small policy, so that a short test meets its bound.
    static func random(using generator: inout some RandomNumberGenerator) throws -> RatePolicy {
        try .sample(
            .random(in: 1...40, using: &generator),
            per: .random(in: 1...30, using: &generator),
            burst: .random(in: 1...12, using: &generator)
        )
    }
}

extension LimitPolicies {
    /// One to four small policies for every scope.
    static func random(using generator: inout some RandomNumberGenerator) throws -> LimitPolicies {
        func some() throws -> [RatePolicy] {
            try (0..<Int.random(in: 1...4, using: &generator)).map { _ in try .random(using: &generator) }
        }
        return LimitPolicies(tenant: try some(), device: try some(), deviceCollapsible: try some(), topic: try some())
    }

    /// These device policies under a tenant that is never in the way.
    static func device(_ policies: [RatePolicy], collapsible: [RatePolicy] = []) -> LimitPolicies {
        LimitPolicies(tenant: [], device: policies, deviceCollapsible: collapsible, topic: [])
    }
}

extension Duration {
    /// Nothing, a moment, or seconds.
    static func random(using generator: inout some RandomNumberGenerator) -> Duration {
        switch Int.random(in: 0..<6, using: &generator) {
        case 0...2: .zero
        case 3: .microseconds(Int.random(in: 1...1_000_000, using: &generator))
        case 4: .milliseconds(Int.random(in: 1...3_000, using: &generator))
        default: .seconds(Int.random(in: 1...20, using: &generator))
        }
    }
}
