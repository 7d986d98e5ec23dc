package import NIOSSL

/// A client pool's connection settings and limits.
package struct HTTPClientConfiguration: Sendable {
    /// A client pool's limits on HTTP/2 connections.
    package struct HTTP2: Sendable {
        /// Connections per event loop that take exchanges, including those being opened. Draining ones are not counted.
        package var maxConnectionsPerLoop = 16
        /// Exchanges on one connection, if its peer allows more.
        package var maxStreamsPerConnection = 256
        /// Attempts to repeat an exchange that peers refused without processing it.
        package var maxRefusals = 3
        /// The silence after which a connection with exchanges is pinged.
        package var pingAfterWaiting = Duration.seconds(5)
        /// The silence after which a connection without exchanges is pinged.
        ///
        /// Peers count pings on idle connections as abuse, so few should occur before the idle timeout.
        package var pingAfterIdle = Duration.seconds(30)
        /// The time for the answer to a ping. A connection without one is dead.
        package var pingTimeout = Duration.seconds(5)
        /// The longest time for which a connection takes new exchanges.
        package var lifetime = Duration.seconds(55 * 60)
        /// The random part of the lifetime, 0 to 1, so that connections don't end together.
        package var lifetimeJitter = 0.2

        package init() {}
    }

    /// The time for making a connection, with name resolution and the TLS handshake.
    package var connectTimeout = Duration.seconds(2)
    /// The protocols offered to an `https` origin, most preferred first. An `http` origin always gets HTTP/1.1.
    package var protocols: [HTTPClientProtocol] = [.http2, .http1]
    /// HTTP/1.1 connections per event loop, in any state.
    package var maxConnectionsPerLoop = 256
    /// Bounds the connections, in any state, of all pools with this configuration or a copy of it.
    ///
    /// If an exchange needs a connection beyond the limit, it fails with ``HTTPClientError/Code/poolExhausted``. A single
    /// pool should not be able to use them all, so ``maxConnectionsPerLoop`` times the loops should be well below the limit.
    package var connections = HTTPConnectionBudget(limit: .max)
    /// Exchanges per event loop that may wait when no further connection is allowed.
    package var maxWaitersPerLoop = 1024
    package var idleTimeout = Duration.seconds(60)
    /// The body of an answer, in bytes, regardless of its request's own limit.
    package var maxResponseBodyBytes = 1024 * 1024
    /// Bounds the bytes of incomplete answers in all pools with this configuration or a copy of it.
    ///
    /// Each origin gets at most half of them, so that a hostile origin fails only its own exchanges.
    package var collecting = HTTPBodyBudget(limit: 64 * 1024 * 1024)
    /// The head of an answer on the wire, in bytes. One field may fill it.
    package var maxResponseHeadBytes = 32 * 1024
    package var maxResponseFields = 128
    package var http2 = HTTP2()
    /// The proxy through which origins are reached; nil for direct connections.
    package var proxy: HTTPProxy?
    /// The verification of `https` origins; nil for the system's trust roots and full verification.
    ///
    /// Protocols that it names replace ``protocols``.
    package var tls: TLSConfiguration?

    package init(tls: TLSConfiguration? = nil) {
        self.tls = tls
    }
}

/// A protocol that client and peer may use. The raw value is its name in TLS (RFC 7301).
package enum HTTPClientProtocol: String, Sendable, CaseIterable {
    case http2 = "h2"
    case http1 = "http/1.1"
}
