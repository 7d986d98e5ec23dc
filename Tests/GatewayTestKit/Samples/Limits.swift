package import GatewayCore

extension LimitKey {
    /// Returns the same key for the same name.
    package static func sample(_ name: String) -> LimitKey {
        var generator = SeededGenerator(seed: SeededGenerator.seed(of: name))
        let words = [generator.next(), generator.next()]
        return LimitKey(
            Pseudonym(bytes: words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } })
        )
    }
}

extension LimitRequest {
    package init(policies: LimitPolicies, recipients: Recipients, isCollapsible: Bool = false) {
        self.init(
            tenant: .sample("tenant"),
            policies: policies,
            recipients: recipients,
            isCollapsible: isCollapsible
        )
    }

    /// A tenant's messages to one device.
    package init(policies: LimitPolicies, device: LimitKey = .sample("device"), count: Int = 1) {
        let devices = Recipients.devices(Array(repeating: device, count: count))
        self.init(tenant: .sample("tenant"), policies: policies, recipients: devices, isCollapsible: false)
    }
}

extension MemoryRateLimiter {
    /// A limiter that adds no jitter to the waits of its buckets.
    package static func withoutJitter(
        maxEntries: Int = 4_000_000,
        metrics: GatewayMetrics? = nil
    ) -> MemoryRateLimiter {
        MemoryRateLimiter(maxEntries: maxEntries, metrics: metrics, jitter: { $0.lowerBound })
    }
}

extension LimitDecision {
    /// The number of recipients out of `count` that it admits.
    package func admitted(of count: Int) -> Int {
        switch self.admission {
        case .all: count
        case .some(let denials): denials.count { $0 == nil }
        case .none: 0
        }
    }
}

extension RatePolicy {
    package static func sample(_ rate: Int, per periodSeconds: Int, burst: Int) throws -> RatePolicy {
        guard let policy = RatePolicy(rate: rate, periodSeconds: periodSeconds, burst: burst) else {
            throw SampleError(what: "policy \(rate) per \(periodSeconds) s, burst \(burst)")
        }
        return policy
    }
}
