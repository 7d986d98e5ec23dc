package import EventLoopHTTP
import FCMModel
import Foundation
package import GatewayCore
package import NIOSSL

/// The APIs of FCM that the gateway calls.
///
/// Each tenant has a breaker, a retry budget and a pause of its own for each API, so that trouble with topics delays no
/// message.
enum FCMAPI: Int, CaseIterable {
    case legacy
    case v1
    case v1Topics
    case instanceID
    case deviceGroups

    /// The label in metrics.
    var label: String {
        switch self {
        case .legacy: "legacy"
        case .v1: "v1"
        case .v1Topics: "v1_topics"
        case .instanceID: "iid"
        case .deviceGroups: "device_groups"
        }
    }
}

/// The APIs that manage FCM's subscriptions.
package enum TopicAPI: String, Sendable, Hashable, CaseIterable {
    /// HTTP v1's own API: one call per device.
    case v1
    /// The Instance ID API: one call for up to a thousand devices.
    case instanceID = "iid"
}

/// The section `upstream`: how the gateway reaches FCM.
package struct UpstreamConfiguration: Sendable, Equatable {
    /// The server of legacy messages, and of legacy tenants' requests about device groups, unless a tenant's credential
    /// names another: a base URL without a trailing slash.
    package var legacyEndpoint = "https://fcm.googleapis.com"
    /// The same for calls by the v1 protocol.
    package var v1Endpoint = "https://fcm.googleapis.com"
    /// The same for the Instance ID API.
    package var iidEndpoint = "https://iid.googleapis.com"
    /// The API that serves the subscriptions of tenants that send by the v1 protocol.
    package var topicAPI = TopicAPI.v1
    /// The hosts, in lower case and with a port where one is needed, that a credential's `token_uri` may name.
    package var allowedTokenHosts = [
        "oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com", "sts.googleapis.com",
        "iamcredentials.googleapis.com",
    ]
    /// The hosts, in lower case and with a port where one is needed, that external accounts may read subject tokens from.
    package var subjectTokenHosts: [String] = []
    /// The folder of files with subject tokens; `nil` for none.
    package var subjectTokenDirectory: String?
    /// The metadata server, a host with its port unless it is 80; empty for none.
    package var metadataServer = ""
    /// The hosts, in lower case and without a port, to which secrets may be sent without encryption, besides this
    /// machine.
    package var allowPlainHTTP: [String] = []
    /// A PEM file of authorities that may certify upstream servers, in addition to the system's.
    package var caFile: String?
    /// The proxy of all calls, `http://[USER@]HOST:PORT`; empty for direct ones.
    package var proxyURL = ""
    /// The hosts, with their subdomains, and addresses that are called without the proxy.
    package var noProxy = ["localhost", "127.0.0.1", "[::1]"]
    /// The timeout of one attempt, from the wait for a connection to the last byte of the answer.
    package var timeout = Duration.seconds(10)
    /// The deadline of all attempts of one call together.
    package var deadline = Duration.seconds(20)
    package var connectTimeout = Duration.seconds(2)
    /// The most connections that each event loop opens to one server.
    package var maxConnectionsPerLoop = 256
    /// The most calls in flight for one list of recipients or devices, at least 1; no key sets it.
    package var fanOut = 100

    package init() {}

    package var tokenHosts: TokenHosts {
        TokenHosts(
            self.allowedTokenHosts,
            plainHTTP: PlainHTTP(hosts: self.allowPlainHTTP),
            subjectAuthorities: self.subjectTokenHosts,
            subjectTokenDirectory: self.subjectTokenDirectory,
            metadataServer: self.metadataServer.isEmpty ? nil : self.metadataServer
        )
    }

    /// Returns where a tenant's messages go: the server that its credential names, or else the configured one.
    func endpoint(for profile: TenantProfile, by kind: UpstreamKind) -> String {
        switch kind {
        case .legacy: profile.legacyCredential?.endpoint ?? self.legacyEndpoint
        case .v1: profile.v1Credential?.endpoint ?? self.v1Endpoint
        }
    }

    package func client(
        connections: Int,
        perLoop: Int,
        proxyPassword: Secret? = nil
    ) throws(GatewayError) -> HTTPClientConfiguration {
        var client = HTTPClientConfiguration(tls: try self.tls())
        // A proxy would answer with the identity of its own machine.
        let metadata = [self.metadataServer.split(separator: ":").first.map(String.init), "169.254.169.254"]
        let direct = self.noProxy + metadata.compactMap(\.self)
        client.proxy = HTTPProxy(self.proxyURL, password: proxyPassword, direct: direct)
        client.connectTimeout = self.connectTimeout
        client.maxConnectionsPerLoop = perLoop
        client.http2.maxConnectionsPerLoop = min(client.http2.maxConnectionsPerLoop, perLoop)
        client.connections = HTTPConnectionBudget(limit: connections)
        return client
    }

    /// Returns TLS that trusts the authorities of ``caFile`` in addition to the system's; throws `invalid`, with words
    /// that follow the key's name.
    package func tls() throws(GatewayError) -> TLSConfiguration? {
        guard let file = self.caFile else { return nil }
        var tls = TLSConfiguration.makeClientConfiguration()
        do {
            tls.additionalTrustRoots = [.certificates(try NIOSSLCertificate.fromPEMFile(file))]
        } catch {
            throw GatewayError(.invalid, "\(file) holds no certificate in PEM, or can't be read")
        }
        return tls
    }
}

extension HTTPProxy {
    /// Parses `http://[USER@]HOST:PORT`. A password in it is refused, because addresses are printed.
    package init?(_ url: String, password: Secret? = nil, direct: [String] = []) {
        guard url.hasPrefix("http://") else { return nil }
        let parts = url.dropFirst("http://".count).split(separator: "@", omittingEmptySubsequences: false)
        guard let place = parts.last, parts.count <= 2, place.contains(":"),
            let origin = HTTPOrigin("http://\(place)")
        else { return nil }
        var authorization: (@Sendable () -> String)?
        if parts.count == 2 {
            guard let user = PercentEncoding.decoded(Array(parts[0].utf8)[...]), !user.isEmpty, !user.contains(":")
            else {
                return nil
            }
            authorization = {
                let pair = Array(user.utf8) + [UInt8(ascii: ":")] + (password?.revealBytes() ?? [])
                return "Basic " + Data(pair).base64EncodedString()
            }
        }
        self.init(host: origin.host, port: origin.port, direct: direct, authorization: authorization)
    }
}

/// The settings of calls to FCM: the section as the gateway started with it, and the values in force of what a reload
/// may change.
package struct UpstreamSettings: Sendable {
    package let configuration: UpstreamConfiguration
    /// ``UpstreamConfiguration/timeout``.
    package let attemptTimeout: DurationSetting
    /// ``UpstreamConfiguration/deadline``.
    package let requestDeadline: DurationSetting
    package let tokenHosts: Setting<TokenHosts>
    package let client: HTTPClientConfiguration
    /// Waits before a retry; throws if the caller is gone.
    package var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    package init(
        _ configuration: UpstreamConfiguration = UpstreamConfiguration(),
        tokenHosts: TokenHosts? = nil,
        client: HTTPClientConfiguration = HTTPClientConfiguration()
    ) {
        precondition(configuration.fanOut >= 1, "fanOut must be at least 1, not \(configuration.fanOut)")
        self.configuration = configuration
        self.attemptTimeout = DurationSetting(configuration.timeout)
        self.requestDeadline = DurationSetting(configuration.deadline)
        self.tokenHosts = Setting(tokenHosts ?? configuration.tokenHosts)
        self.client = client
    }

    /// Applies the settings that may change while calls are in flight.
    package func reload(_ configuration: UpstreamConfiguration) {
        self.attemptTimeout.change(to: configuration.timeout)
        self.requestDeadline.change(to: configuration.deadline)
        self.tokenHosts.change(to: configuration.tokenHosts)
    }
}
