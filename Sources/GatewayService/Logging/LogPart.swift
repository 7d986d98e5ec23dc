/// The parts of the gateway that are logged at levels of their own; each is also the name of its logger.
package enum LogPart: String, Sendable, CaseIterable {
    /// One line for every request.
    case access
    /// The listeners: connections, certificates, keys that are refused, requests that can't be served.
    case http
    /// Calls to FCM, and the access tokens for them.
    case upstream
    /// The audit trail.
    case audit
    /// What else is kept: retired tokens, idempotency keys, the levels of rate limits.
    case state
    /// Start, stop, reloads, and whatever belongs to no other part.
    case gateway
}
