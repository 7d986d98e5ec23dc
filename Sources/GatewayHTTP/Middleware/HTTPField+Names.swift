import EventLoopHTTP
import HTTPTypes

extension HTTPField.Name {
    /// A header name of the gateway's own; the texts below are all well-formed.
    private static func own(_ name: String) -> HTTPField.Name {
        HTTPField.Name(name) ?? .userAgent
    }

    static let requestID = own("X-Request-ID")
    static let requestTimeout = own("X-Request-Timeout-Ms")
    static let traceParent = own("traceparent")
    static let traceState = own("tracestate")
    static let idempotencyKey = own("Idempotency-Key")
    static let idempotentReplayed = own("Idempotent-Replayed")
    static let rateLimit = own("RateLimit")
    static let rateLimitPolicy = own("RateLimit-Policy")
}

extension HTTPFieldKey {
    static let acceptEncoding = HTTPFieldKey(.acceptEncoding)
    static let allow = HTTPFieldKey(.allow)
    static let authorization = HTTPFieldKey(.authorization)
    static let contentEncoding = HTTPFieldKey(.contentEncoding)
    static let contentType = HTTPFieldKey(.contentType)
    static let idempotencyKey = HTTPFieldKey(.idempotencyKey)
    static let idempotentReplayed = HTTPFieldKey(.idempotentReplayed)
    static let rateLimit = HTTPFieldKey(.rateLimit)
    static let rateLimitPolicy = HTTPFieldKey(.rateLimitPolicy)
    static let requestID = HTTPFieldKey(.requestID)
    static let requestTimeout = HTTPFieldKey(.requestTimeout)
    static let retryAfter = HTTPFieldKey(.retryAfter)
    static let traceParent = HTTPFieldKey(.traceParent)
    static let traceState = HTTPFieldKey(.traceState)
    static let wwwAuthenticate = HTTPFieldKey(.wwwAuthenticate)
}
