/// The data listener: where tenants' services connect, and its bounds.
///
/// The bounds' reasons are in the reliability document, sections 8 and 9.
struct HTTPListenerConfiguration: Sendable, Equatable {
    /// The address to bind.
    var host: String

    /// The port to bind; 0 takes any free one.
    var port: Int

    /// The certificate files; nil for plain HTTP.
    var tls: TLSFilesConfiguration?

    /// How long an idle connection is kept; longer than the balancer in front does, so that it closes first.
    var keepAliveTimeout: Duration

    /// How long a request's head may take to arrive.
    var headTimeout: Duration

    /// How long a request's body may take to arrive, counted from its head.
    var bodyTimeout: Duration

    /// The most connections held at once.
    var maxConnections: Int

    /// The most requests in flight at once; one tenant gets half of them, messages without high priority four fifths.
    var maxInFlight: Int

    /// The most bytes of request bodies held at once.
    var maxBufferedBytes: Int

    /// How long requests may have waited for a loop that is behind all the time before it sheds them.
    var maxLag: Duration

    /// How long after SIGTERM new requests are still accepted while `/readyz` answers 503.
    var drainGrace: Duration

    /// How long requests in flight may take to finish once the grace is over.
    var shutdownTimeout: Duration

    /// Creates the section; what is not named has its default.
    init(
        host: String = "0.0.0.0",
        port: Int = 8080,
        tls: TLSFilesConfiguration? = nil,
        keepAliveTimeout: Duration = .milliseconds(75_000),
        headTimeout: Duration = .milliseconds(5_000),
        bodyTimeout: Duration = .milliseconds(10_000),
        maxConnections: Int = 16_384,
        maxInFlight: Int = 1_024,
        maxBufferedBytes: Int = 67_108_864,
        maxLag: Duration = .milliseconds(4),
        drainGrace: Duration = .milliseconds(5_000),
        shutdownTimeout: Duration = .milliseconds(25_000)
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.keepAliveTimeout = keepAliveTimeout
        self.headTimeout = headTimeout
        self.bodyTimeout = bodyTimeout
        self.maxConnections = maxConnections
        self.maxInFlight = maxInFlight
        self.maxBufferedBytes = maxBufferedBytes
        self.maxLag = maxLag
        self.drainGrace = drainGrace
        self.shutdownTimeout = shutdownTimeout
    }
}
