/// How FCM is reached.
package struct UpstreamConfiguration: Sendable, Equatable {
    /// The APIs that keep subscriptions.
    package enum TopicAPI: String, Sendable, CaseIterable {
        /// HTTP v1's own, and the Instance ID API where FCM does not have that.
        case v1
        /// The Instance ID API.
        case iid
    }

    /// The legacy HTTP protocol's base URL, without a trailing slash.
    package var legacyEndpoint: String

    /// The HTTP v1 protocol's base URL, without a trailing slash.
    package var v1Endpoint: String

    /// The Instance ID service's base URL, without a trailing slash.
    package var iidEndpoint: String

    /// By which API the subscriptions of tenants that send by HTTP v1 are kept.
    package var topicAPI: TopicAPI

    /// The hosts, lower case and with a port where one is needed, that an uploaded credential's `token_uri` may name.
    package var allowedTokenHosts: [String]

    /// The hosts, lower case and without a port, that secrets may go to without encryption, besides this machine itself.
    package var allowPlainHTTP: [String]

    /// A PEM file of authorities that may certify upstream servers, besides the system's; nil for the system's alone.
    package var caFile: String?

    /// How long one attempt may take.
    package var timeout: Duration

    /// How long all attempts of one call may take together.
    package var deadline: Duration

    /// How long connecting may take.
    package var connectTimeout: Duration

    /// The most connections each event loop opens to one endpoint.
    package var maxConnectionsPerLoop: Int

    /// Creates the section; what is not named has its default.
    package init(
        legacyEndpoint: String = "https://fcm.googleapis.com",
        v1Endpoint: String = "https://fcm.googleapis.com",
        iidEndpoint: String = "https://iid.googleapis.com",
        topicAPI: TopicAPI = .v1,
        allowedTokenHosts: [String] = ["oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"],
        allowPlainHTTP: [String] = [],
        caFile: String? = nil,
        timeout: Duration = .milliseconds(10_000),
        deadline: Duration = .milliseconds(20_000),
        connectTimeout: Duration = .milliseconds(2_000),
        maxConnectionsPerLoop: Int = 256
    ) {
        self.legacyEndpoint = legacyEndpoint
        self.v1Endpoint = v1Endpoint
        self.iidEndpoint = iidEndpoint
        self.topicAPI = topicAPI
        self.allowedTokenHosts = allowedTokenHosts
        self.allowPlainHTTP = allowPlainHTTP
        self.caFile = caFile
        self.timeout = timeout
        self.deadline = deadline
        self.connectTimeout = connectTimeout
        self.maxConnectionsPerLoop = maxConnectionsPerLoop
    }
}
