/// Why a request is not served under load.
package enum ShedReason: String, Sendable, Hashable, CaseIterable {
    /// As many requests are in flight as may be.
    case inFlight = "in_flight"
    /// As many requests of the one tenant are in flight as may be.
    case tenantShare = "tenant_share"
    /// What is left is reserved for messages of high priority.
    case reserve
    /// The request's event loop has been behind for some time.
    case lag
    /// As many bytes of bodies are held as may be.
    case bufferedBytes = "buffered_bytes"
}
