/// What a client and its peer may speak; the raw value is the protocol's name in TLS (RFC 7301).
package enum HTTPClientProtocol: String, Sendable, CaseIterable {
    /// HTTP/2: many exchanges share a connection.
    case http2 = "h2"
    /// HTTP/1.1: one exchange after the other has a connection to itself.
    case http1 = "http/1.1"
}
