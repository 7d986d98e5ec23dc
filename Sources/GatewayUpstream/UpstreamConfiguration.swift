package import EventLoopHTTP
package import GatewayCore

/// How the gateway reaches FCM.
package struct UpstreamConfiguration: Sendable {
    /// Where legacy messages go unless a tenant's credential names another server.
    package var legacyEndpoint: String
    /// Where messages of the v1 protocol go unless a tenant's credential names another server.
    package var v1Endpoint: String
    /// Where the Instance ID API is unless a tenant's credential names another server.
    package var iidEndpoint: String
    /// By which API the subscriptions of tenants that send by the v1 protocol are kept.
    package var topicAPI: TopicAPI
    /// Where service accounts may ask for access tokens.
    package var tokenHosts: Setting<TokenHosts>
    /// How long one attempt may take, from the wait for a connection to the last byte of the answer.
    package var attemptTimeout: DurationSetting
    /// How many calls one message to a list of recipients may have in flight by the v1 protocol, at least 1.
    package var fanOut: Int
    /// How connections are made, and what is put up with.
    package var client: HTTPClientConfiguration
    /// Waits before a repeat; throws when the caller is gone.
    package var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// A configuration; by default Google's endpoints, ten seconds, and a hundred calls at a time.
    package init(
        legacyEndpoint: String = "https://fcm.googleapis.com",
        v1Endpoint: String = "https://fcm.googleapis.com",
        iidEndpoint: String = "https://iid.googleapis.com",
        topicAPI: TopicAPI = .v1,
        tokenHosts: TokenHosts = .google,
        attemptTimeout: Duration = .seconds(10),
        fanOut: Int = 100,
        client: HTTPClientConfiguration = HTTPClientConfiguration()
    ) {
        precondition(fanOut >= 1, "fanOut must be at least 1, not \(fanOut)")
        self.legacyEndpoint = legacyEndpoint
        self.v1Endpoint = v1Endpoint
        self.iidEndpoint = iidEndpoint
        self.topicAPI = topicAPI
        self.tokenHosts = Setting(tokenHosts)
        self.attemptTimeout = DurationSetting(attemptTimeout)
        self.fanOut = fanOut
        self.client = client
    }
}
