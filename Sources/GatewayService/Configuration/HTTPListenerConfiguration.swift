/// The data listener: where tenants' services connect, and its bounds.
///
/// The bounds' reasons are in the reliability document, sections 8 and 9.
package struct HTTPListenerConfiguration: Sendable, Equatable {
    /// The address to bind.
    package var host: String

    /// The port to bind; 0 takes any free one.
    package var port: Int

    /// The certificate files; nil for plain HTTP.
    package var tls: TLSFilesConfiguration?

    /// What is put up with from peers.
    package var bounds: ConnectionBoundsConfiguration

    /// The most requests in flight at once; one tenant gets half of them, messages without high priority four fifths.
    package var maxInFlight: Int

    /// The most bytes of request bodies held at once.
    package var maxBufferedBytes: Int

    /// How long requests may have waited for a loop that is behind all the time before it sheds them.
    package var maxLag: Duration

    /// How long after SIGTERM new requests are still accepted while `/readyz` answers 503.
    package var drainGrace: Duration

    /// How long requests in flight may take to finish once the grace is over.
    package var shutdownTimeout: Duration

    /// Creates the section; what is not named has its default.
    package init(
        host: String = "0.0.0.0",
        port: Int = 8080,
        tls: TLSFilesConfiguration? = nil,
        bounds: ConnectionBoundsConfiguration = ConnectionBoundsConfiguration(),
        maxInFlight: Int = 1_024,
        maxBufferedBytes: Int = 67_108_864,
        maxLag: Duration = .milliseconds(4),
        drainGrace: Duration = .milliseconds(5_000),
        shutdownTimeout: Duration = .milliseconds(25_000)
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.bounds = bounds
        self.maxInFlight = maxInFlight
        self.maxBufferedBytes = maxBufferedBytes
        self.maxLag = maxLag
        self.drainGrace = drainGrace
        self.shutdownTimeout = shutdownTimeout
    }
}
