package import NIOSSL

/// How a client pool connects, and what it puts up with.
package struct HTTPClientConfiguration: Sendable {
    /// How long making a connection may take, with name resolution and the TLS handshake.
    package var connectTimeout: Duration
    /// What is offered to the peer of an `https` origin, most wanted first.
    ///
    /// An `http` origin is always spoken to in HTTP/1.1.
    package var protocols: [HTTPClientProtocol]
    /// HTTP/1.1 connections per event loop, in whatever state.
    package var maxConnectionsPerLoop: Int
    /// Bounds the connections, in whatever state, of every pool with this configuration or a copy of it.
    ///
    /// An exchange that would need one more fails with ``HTTPClientError/Code/poolExhausted``. One pool should not be able
    /// to take them all: ``maxConnectionsPerLoop`` for every loop is to be well below it.
    package var connections: HTTPConnectionGauge
    /// Exchanges per event loop that may wait for a connection once there are as many as may be.
    package var maxWaitersPerLoop: Int
    /// How long an unused connection is kept.
    package var idleTimeout: Duration
    /// The body of an answer, in bytes, whatever its request allows.
    package var maxResponseBodyBytes: Int
    /// Bounds the bytes of the answers that are not complete, in every pool with this configuration or a copy of it.
    ///
    /// One origin gets half of them, so that a hostile one fails its own exchanges.
    package var collecting: HTTPBodyGauge
    /// The head of an answer on the wire, in bytes; one field may fill it.
    package var maxResponseHeadBytes: Int
    /// Field lines of one answer.
    package var maxResponseFields: Int
    /// What holds for HTTP/2 alone.
    package var http2: HTTP2ClientConfiguration
    /// How `https` origins are verified; nil for the system's trust roots and full verification.
    ///
    /// Protocols named there are offered instead of ``protocols``.
    package var tls: TLSConfiguration?

    /// Creates a configuration with every limit at its default.
    ///
    /// - Parameter tls: how `https` origins are verified; nil for the system's trust roots and full verification.
    package init(tls: TLSConfiguration? = nil) {
        self.connectTimeout = .seconds(2)
        self.protocols = [.http2, .http1]
        self.maxConnectionsPerLoop = 256
        self.connections = HTTPConnectionGauge(limit: .max)
        self.maxWaitersPerLoop = 1024
        self.idleTimeout = .seconds(60)
        self.maxResponseBodyBytes = 1024 * 1024
        self.collecting = HTTPBodyGauge(limit: 64 * 1024 * 1024)
        self.maxResponseHeadBytes = 32 * 1024
        self.maxResponseFields = 128
        self.http2 = HTTP2ClientConfiguration()
        self.tls = tls
    }
}
