package import NIOSSL

/// How a client pool connects, and its limits.
package struct HTTPClientConfiguration: Sendable {
    /// How long making a connection may take, with name resolution and the TLS handshake.
    package var connectTimeout = Duration.seconds(2)
    /// What is offered to an `https` origin, most wanted first; an `http` origin is always spoken to in HTTP/1.1.
    package var protocols: [HTTPClientProtocol] = [.http2, .http1]
    /// HTTP/1.1 connections per event loop, in whatever state.
    package var maxConnectionsPerLoop = 256
    /// Bounds the connections, in whatever state, of every pool with this configuration or a copy of it.
    ///
    /// An exchange that would need one more fails with ``HTTPClientError/Code/poolExhausted``. One pool should not be able
    /// to take them all: ``maxConnectionsPerLoop`` for every loop is to be well below it.
    package var connections = HTTPConnectionBudget(limit: .max)
    /// Exchanges per event loop that may wait for a connection once there are as many as may be.
    package var maxWaitersPerLoop = 1024
    package var idleTimeout = Duration.seconds(60)
    /// The body of an answer, in bytes, whatever its request allows.
    package var maxResponseBodyBytes = 1024 * 1024
    /// Bounds the bytes of the answers that are not complete, in every pool with this configuration or a copy of it.
    ///
    /// One origin gets half of them, so that a hostile one fails its own exchanges.
    package var collecting = HTTPBodyBudget(limit: 64 * 1024 * 1024)
    /// The head of an answer on the wire, in bytes; one field may fill it.
    package var maxResponseHeadBytes = 32 * 1024
    package var maxResponseFields = 128
    package var http2 = HTTP2ClientConfiguration()
    /// How `https` origins are verified; nil for the system's trust roots and full verification.
    ///
    /// Protocols named there are offered instead of ``protocols``.
    package var tls: TLSConfiguration?

    package init(tls: TLSConfiguration? = nil) {
        self.tls = tls
    }
}

/// A client pool's limits on HTTP/2 connections.
package struct HTTP2ClientConfiguration: Sendable {
    /// Connections per event loop that take exchanges, with those being opened; draining ones come on top.
    package var maxConnectionsPerLoop = 16
    /// Exchanges on one connection, where its peer allows more.
    package var maxStreamsPerConnection = 256
    /// How often an exchange is repeated that peers refused without having looked at it.
    package var maxRefusals = 3
    /// How long a connection with exchanges may be silent before it is asked whether it is alive.
    package var pingAfterWaiting = Duration.seconds(5)
    /// How long a connection without exchanges may be silent before it is asked whether it is alive.
    ///
    /// Peers count pings on idle connections as abuse, so there should be few of them before the idle timeout.
    package var pingAfterIdle = Duration.seconds(30)
    /// How long the answer to a ping may take; a connection without one is dead.
    package var pingTimeout = Duration.seconds(5)
    /// How long a connection takes new exchanges at most.
    package var lifetime = Duration.seconds(55 * 60)
    /// The part of the lifetime, 0 to 1, that is drawn by lot, so that connections do not end together.
    package var lifetimeJitter = 0.2

    package init() {}
}

/// What a client and its peer may speak; the raw value is the protocol's name in TLS (RFC 7301).
package enum HTTPClientProtocol: String, Sendable, CaseIterable {
    case http2 = "h2"
    case http1 = "http/1.1"
}
