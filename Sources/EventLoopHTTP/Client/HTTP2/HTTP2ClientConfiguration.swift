/// What a client pool puts up with, and asks for, on HTTP/2 connections.
package struct HTTP2ClientConfiguration: Sendable {
    /// Connections per event loop that take exchanges, with those being opened; draining ones come on top.
    package var maxConnectionsPerLoop: Int
    /// Exchanges on one connection, where its peer allows more.
    package var maxStreamsPerConnection: Int
    /// How often an exchange is repeated that peers refused without having looked at it.
    package var maxRefusals: Int
    /// How long a connection with exchanges may be silent before it is asked whether it is alive.
    package var pingAfterWaiting: Duration
    /// How long a connection without exchanges may be silent before it is asked whether it is alive.
    ///
    /// Peers count pings on idle connections as abuse, so there should be few of them before the idle timeout.
    package var pingAfterIdle: Duration
    /// How long the answer to a ping may take; a connection without one is dead.
    package var pingTimeout: Duration
    /// How long a connection takes new exchanges at most.
    package var lifetime: Duration
    /// The part of the lifetime, 0 to 1, that is drawn by lot, so that connections do not end together.
    package var lifetimeJitter: Double

    /// Creates a configuration with every limit at its default.
    package init() {
        self.maxConnectionsPerLoop = 16
        self.maxStreamsPerConnection = 256
        self.maxRefusals = 3
        self.pingAfterWaiting = .seconds(5)
        self.pingAfterIdle = .seconds(30)
        self.pingTimeout = .seconds(5)
        self.lifetime = .seconds(55 * 60)
        self.lifetimeJitter = 0.2
    }
}
