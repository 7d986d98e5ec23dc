/// The admin listener: where operators, probes and Prometheus connect.
package struct AdminListenerConfiguration: Sendable {
    /// The fewest characters an admin token may have: as many as 24 random bytes take in base64.
    package static let minTokenCharacters = 32

    /// The address to bind; loopback unless told otherwise.
    package var host: String

    /// The port to bind; 0 takes any free one.
    package var port: Int

    /// The certificate files; nil for plain HTTP.
    package var tls: TLSFilesConfiguration?

    /// What is put up with from peers.
    package var bounds: ConnectionBoundsConfiguration

    /// The operators' token; only `config check` and `config show` do without one.
    package var token: Redacted<String>?

    /// Creates the section; what is not named has its default.
    package init(
        host: String = "127.0.0.1",
        port: Int = 8081,
        tls: TLSFilesConfiguration? = nil,
        bounds: ConnectionBoundsConfiguration = ConnectionBoundsConfiguration(maxConnections: 256),
        token: Redacted<String>? = nil
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.bounds = bounds
        self.token = token
    }
}
