import EventLoopHTTP
import GatewayCore
import HTTPTypes

extension HTTPFieldKey {
    static let accept = HTTPFieldKey(.accept)
    static let acceptEncoding = HTTPFieldKey(.acceptEncoding)
    static let allow = HTTPFieldKey(.allow)
    static let authorization = HTTPFieldKey(.authorization)
    static let cacheControl = HTTPFieldKey(.cacheControl)
    static let contentEncoding = HTTPFieldKey(.contentEncoding)
    static let contentSecurityPolicy = HTTPFieldKey(.init(constant: "Content-Security-Policy"))
    static let contentType = HTTPFieldKey(.contentType)
    static let contentTypeOptions = HTTPFieldKey(.init(constant: "X-Content-Type-Options"))
    static let cookie = HTTPFieldKey(.cookie)
    static let consoleRefresh = HTTPFieldKey(.init(constant: "X-Console-Refresh"))
    static let idempotencyKey = HTTPFieldKey(.init(constant: "Idempotency-Key"))
    static let idempotentReplayed = HTTPFieldKey(.init(constant: "Idempotent-Replayed"))
    static let ifMatch = HTTPFieldKey(.ifMatch)
    static let ifNoneMatch = HTTPFieldKey(.ifNoneMatch)
    static let location = HTTPFieldKey(.location)
    static let nextCursor = HTTPFieldKey(.init(constant: "Next-Cursor"))
    static let prefer = HTTPFieldKey(.init(constant: "Prefer"))
    static let preferenceApplied = HTTPFieldKey(.init(constant: "Preference-Applied"))
    static let projectID = HTTPFieldKey(.init(constant: "project_id"))
    static let rateLimit = HTTPFieldKey(.init(constant: "RateLimit"))
    static let rateLimitPolicy = HTTPFieldKey(.init(constant: "RateLimit-Policy"))
    static let referrerPolicy = HTTPFieldKey(.init(constant: "Referrer-Policy"))
    static let requestID = HTTPFieldKey(.init(constant: "X-Request-ID"))
    static let requestTimeout = HTTPFieldKey(.init(constant: "X-Request-Timeout-Ms"))
    static let retryAfter = HTTPFieldKey(.retryAfter)
    static let setCookie = HTTPFieldKey(.setCookie)
    static let traceParent = HTTPFieldKey(.init(constant: "traceparent"))
    static let traceState = HTTPFieldKey(.init(constant: "tracestate"))
    static let wwwAuthenticate = HTTPFieldKey(.wwwAuthenticate)
}

/// The `RateLimit` and `RateLimit-Policy` fields (draft-ietf-httpapi-ratelimit-headers) for a tenant's quotas.
enum RateLimitFields {
    /// The remaining quota: `"tenant";r=8999;t=1`.
    static func appendLimit(_ quotas: [QuotaStatus], to text: inout [UInt8]) {
        Self.append(quotas, to: &text) { text, quota in
            text.append(parameter: UInt8(ascii: "r"), quota.remaining)
            text.append(parameter: UInt8(ascii: "t"), quota.resetSeconds)
        }
    }

    /// The allowed quota: `"tenant";q=9000;w=1`.
    static func appendPolicy(_ quotas: [QuotaStatus], to text: inout [UInt8]) {
        Self.append(quotas, to: &text) { text, quota in
            text.append(parameter: UInt8(ascii: "q"), quota.policy.rate)
            text.append(parameter: UInt8(ascii: "w"), quota.policy.periodSeconds)
        }
    }

    /// The first policy is called `tenant`, further ones `tenant-2` and so on.
    private static func append(
        _ quotas: [QuotaStatus],
        to text: inout [UInt8],
        _ parameters: (inout [UInt8], QuotaStatus) -> Void
    ) {
        for index in quotas.indices {
            text.append(utf8: index == 0 ? "\"tenant" : ", \"tenant-")
            if index > 0 { text.append(decimal: index + 1) }
            text.append(UInt8(ascii: "\""))
            parameters(&text, quotas[index])
        }
    }
}

extension [UInt8] {
    /// Appends a parameter of one letter, byte by byte, which is much cheaper than concatenating short strings.
    fileprivate mutating func append(parameter name: UInt8, _ value: Int) {
        self.append(UInt8(ascii: ";"))
        self.append(name)
        self.append(UInt8(ascii: "="))
        self.append(decimal: value)
    }
}

extension HTTPHeaderLines {
    /// The fields of a JSON answer.
    static let json: HTTPHeaderLines = [.contentType: "application/json"]

    /// Adds the tenant's remaining quotas, if there are any.
    mutating func append(_ quotas: [QuotaStatus]) {
        guard !quotas.isEmpty else { return }
        self.append(.rateLimit) { RateLimitFields.appendLimit(quotas, to: &$0) }
        self.append(.rateLimitPolicy) { RateLimitFields.appendPolicy(quotas, to: &$0) }
    }
}
