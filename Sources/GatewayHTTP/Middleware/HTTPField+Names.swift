import EventLoopHTTP
import HTTPTypes

extension HTTPField.Name {
    static let requestID = HTTPField.Name(constant: "X-Request-ID")
    static let requestTimeout = HTTPField.Name(constant: "X-Request-Timeout-Ms")
    static let traceParent = HTTPField.Name(constant: "traceparent")
    static let traceState = HTTPField.Name(constant: "tracestate")
    static let idempotencyKey = HTTPField.Name(constant: "Idempotency-Key")
    static let idempotentReplayed = HTTPField.Name(constant: "Idempotent-Replayed")
    static let rateLimit = HTTPField.Name(constant: "RateLimit")
    static let rateLimitPolicy = HTTPField.Name(constant: "RateLimit-Policy")
}

extension HTTPFieldKey {
    static let acceptEncoding = HTTPFieldKey(.acceptEncoding)
    static let allow = HTTPFieldKey(.allow)
    static let authorization = HTTPFieldKey(.authorization)
    static let contentEncoding = HTTPFieldKey(.contentEncoding)
    static let contentType = HTTPFieldKey(.contentType)
    static let idempotencyKey = HTTPFieldKey(.idempotencyKey)
    static let idempotentReplayed = HTTPFieldKey(.idempotentReplayed)
    /// The sender whose device groups a request manages.
    static let projectID = HTTPFieldKey(HTTPField.Name(constant: "project_id"))
    static let rateLimit = HTTPFieldKey(.rateLimit)
    static let rateLimitPolicy = HTTPFieldKey(.rateLimitPolicy)
    static let requestID = HTTPFieldKey(.requestID)
    static let requestTimeout = HTTPFieldKey(.requestTimeout)
    static let retryAfter = HTTPFieldKey(.retryAfter)
    static let traceParent = HTTPFieldKey(.traceParent)
    static let traceState = HTTPFieldKey(.traceState)
    static let wwwAuthenticate = HTTPFieldKey(.wwwAuthenticate)
}
