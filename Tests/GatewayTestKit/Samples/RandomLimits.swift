package import GatewayCore

extension RatePolicy {
    /// A small policy, so that a short test reaches its limit.
    package static func random(using generator: inout some RandomNumberGenerator) throws -> RatePolicy {
        try .sample(
            .random(in: 1...40, using: &generator),
            per: .random(in: 1...30, using: &generator),
            burst: .random(in: 1...12, using: &generator)
        )
    }
}

extension LimitPolicies {
    /// One to four small policies for every scope.
    package static func random(using generator: inout some RandomNumberGenerator) throws -> LimitPolicies {
        func some() throws -> [RatePolicy] {
            try (0..<Int.random(in: 1...4, using: &generator)).map { _ in try .random(using: &generator) }
        }
        return LimitPolicies(tenant: try some(), device: try some(), deviceCollapsible: try some(), topic: try some())
    }

    /// These device policies without limits for the tenant or topics.
    package static func device(_ policies: [RatePolicy], collapsible: [RatePolicy] = []) -> LimitPolicies {
        LimitPolicies(tenant: [], device: policies, deviceCollapsible: collapsible, topic: [])
    }
}

extension Duration {
    /// Zero, or at most 20 seconds.
    package static func random(using generator: inout some RandomNumberGenerator) -> Duration {
        switch Int.random(in: 0..<6, using: &generator) {
        case 0...2: .zero
        case 3: .microseconds(Int.random(in: 1...1_000_000, using: &generator))
        case 4: .milliseconds(Int.random(in: 1...3_000, using: &generator))
        default: .seconds(Int.random(in: 1...20, using: &generator))
        }
    }
}

extension LimitRequest {
    /// A few devices, topics or calls of one of two tenants, so that limits are reached.
    package static func random(_ policies: LimitPolicies, using generator: inout SeededGenerator) -> LimitRequest {
        // No two tenants have a key in common.
        let tenant = "tenant \(Int.random(in: 0..<2, using: &generator))"
        func keys(_ kind: String, atMost count: Int) -> [LimitKey] {
            (0..<Int.random(in: 1...count, using: &generator))
                .map { _ in LimitKey.sample("\(tenant) \(kind) \(Int.random(in: 0..<4, using: &generator))") }
        }
        let recipients: LimitRequest.Recipients =
            switch Int.random(in: 0..<8, using: &generator) {
            case 0...4: .devices(keys("device", atMost: 6))
            case 5...6: .topics(Array(Set(keys("topic", atMost: 3))))
            default: .tenantOnly(Int.random(in: 1...4, using: &generator))
            }
        return LimitRequest(
            tenant: .sample(tenant),
            policies: policies,
            recipients: recipients,
            isCollapsible: Bool.random(using: &generator)
        )
    }
}
