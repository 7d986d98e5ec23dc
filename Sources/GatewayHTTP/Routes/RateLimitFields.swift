import GatewayCore

/// The `RateLimit` and `RateLimit-Policy` fields (draft-ietf-httpapi-ratelimit-headers) for a tenant's quotas.
enum RateLimitFields {
    /// What is left: `"tenant";r=8999;t=1`.
    static func limit(_ quotas: [QuotaStatus]) -> String {
        Self.list(quotas) { ";r=\($0.remaining);t=\($0.resetSeconds)" }
    }

    /// What is allowed: `"tenant";q=9000;w=1`.
    static func policy(_ quotas: [QuotaStatus]) -> String {
        Self.list(quotas) { ";q=\($0.policy.rate);w=\($0.policy.periodSeconds)" }
    }

    /// The first policy is called `tenant`, further ones `tenant-2` and so on.
    private static func list(_ quotas: [QuotaStatus], _ parameters: (QuotaStatus) -> String) -> String {
        var text = ""
        for (index, quota) in quotas.enumerated() {
            if index > 0 { text += ", " }
            text += index == 0 ? "\"tenant\"" : "\"tenant-\(index + 1)\""
            text += parameters(quota)
        }
        return text
    }
}
