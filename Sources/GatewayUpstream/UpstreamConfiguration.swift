package import EventLoopHTTP

/// How the gateway reaches FCM.
package struct UpstreamConfiguration: Sendable {
    /// Where legacy messages go unless a tenant's credential names another server.
    package var legacyEndpoint: String
    /// How long one attempt may take, from the wait for a connection to the last byte of the answer.
    package var attemptTimeout: Duration
    /// How connections are made, and what is put up with.
    package var client: HTTPClientConfiguration

    /// A configuration; by default Google's endpoint and ten seconds.
    package init(
        legacyEndpoint: String = "https://fcm.googleapis.com",
        attemptTimeout: Duration = .seconds(10),
        client: HTTPClientConfiguration = HTTPClientConfiguration()
    ) {
        self.legacyEndpoint = legacyEndpoint
        self.attemptTimeout = attemptTimeout
        self.client = client
    }
}
