import GatewayCore

/// A rate policy as it is stored.
struct StoredPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case rate
        case periodSeconds = "period_s"
        case burst
    }

    let rate: Int
    let periodSeconds: Int
    let burst: Int

    /// - Returns: `nil` for text that holds anything but policies that are allowed.
    static func decode(_ text: String) -> [RatePolicy]? {
        guard let stored = StoredJSON.decode([StoredPolicy].self, from: text) else { return nil }
        let policies = stored.compactMap { RatePolicy(rate: $0.rate, periodSeconds: $0.periodSeconds, burst: $0.burst) }
        return policies.count == stored.count ? policies : nil
    }

    static func encode(_ policies: [RatePolicy]) throws -> String {
        try StoredJSON.encode(
            policies.map { StoredPolicy(rate: $0.rate, periodSeconds: $0.periodSeconds, burst: $0.burst) }
        )
    }
}
