import EventLoopHTTP
package import GatewayCore
import GatewayHTTP
import GatewayUpstream
package import NIOSSL

extension LimitPolicies {
    /// The configured defaults.
    ///
    /// - Throws: why a policy can't be kept, by its key.
    package init(_ defaults: RateLimitDefaultsConfiguration) throws(ConfigurationProblems) {
        self.init(
            tenant: try Self.policies(defaults.tenant, "tenant"),
            device: try Self.policies(defaults.device, "device"),
            deviceCollapsible: try Self.policies(defaults.deviceCollapsible, "deviceCollapsible"),
            topic: try Self.policies(defaults.topic, "topic")
        )
    }

    private static func policies(
        _ list: [RatePolicyConfiguration],
        _ scope: String
    ) throws(ConfigurationProblems) -> [RatePolicy] {
        func problem(_ message: String) -> ConfigurationProblems {
            ConfigurationProblems([
                ConfigurationProblem(place: .unknown, key: "limits.defaults.\(scope)", message: message)
            ])
        }
        guard list.count <= Self.maxPoliciesPerScope else {
            throw problem("at most \(Self.maxPoliciesPerScope) policies for one scope")
        }
        var policies: [RatePolicy] = []
        for item in list {
            guard let policy = RatePolicy(rate: item.rate, periodSeconds: item.perS, burst: item.burst) else {
                throw problem("a policy must refill its burst within 30 days")
            }
            policies.append(policy)
        }
        return policies
    }
}

extension GatewayCore.AuditConfiguration {
    /// The configured mode, queue and times.
    init(_ configuration: AuditConfiguration) {
        self.init(
            queueCapacity: configuration.queueRecords,
            queueBytes: configuration.queueBytes,
            flushInterval: configuration.flushInterval,
            commitTimeout: configuration.commitTimeout
        )
        self.isStrict = configuration.mode == .strict
        self.lateAfter = configuration.spoolAfter
    }
}

extension GatewayUpstream.UpstreamConfiguration {
    /// The configured endpoints, timeouts and bounds, and as many connections as are planned.
    ///
    /// - Throws: what is wrong with the authorities' file.
    init(
        _ configuration: UpstreamConfiguration,
        plan: DescriptorPlan,
        tokenHosts: Setting<TokenHosts>,
        attemptTimeout: DurationSetting
    ) throws {
        var client = HTTPClientConfiguration(tls: try configuration.caFile.map(TLSConfiguration.init(trusting:)))
        client.connectTimeout = configuration.connectTimeout
        client.maxConnectionsPerLoop = plan.upstreamConnectionsPerLoop
        client.http2.maxConnectionsPerLoop = min(client.http2.maxConnectionsPerLoop, plan.upstreamConnectionsPerLoop)
        client.connections = HTTPConnectionGauge(limit: plan.upstreamConnections)
        self.init(
            legacyEndpoint: configuration.legacyEndpoint,
            v1Endpoint: configuration.v1Endpoint,
            iidEndpoint: configuration.iidEndpoint,
            topicAPI: configuration.topicAPI.part,
            client: client
        )
        self.tokenHosts = tokenHosts
        self.attemptTimeout = attemptTimeout
    }
}

extension UpstreamConfiguration.TopicAPI {
    /// The same as the calls to FCM know it.
    fileprivate var part: TopicAPI {
        switch self {
        case .v1: .v1
        case .iid: .instanceID
        }
    }
}

extension LoadLimits {
    /// What the data listener takes on at once.
    init(_ configuration: HTTPListenerConfiguration) {
        self.init(maxInFlight: configuration.maxInFlight, maxLag: configuration.maxLag)
    }
}

extension HTTPServerConfiguration {
    /// The data listener's server.
    ///
    /// - Parameters:
    ///   - configuration: where it listens, and its bounds.
    ///   - maxConnections: how many connections it may hold.
    ///   - certificate: what it proves itself with; `nil` for plain HTTP.
    ///   - listener: what it serves.
    init(
        _ configuration: HTTPListenerConfiguration,
        maxConnections: Int,
        certificate: ListenerCertificate?,
        listener: Listener
    ) {
        self.init(host: configuration.host, port: configuration.port, tls: certificate?.configuration)
        self.name = "data"
        self.apply(configuration.bounds, listener)
        self.maxConnections = maxConnections
        self.maxBufferedBytes = configuration.maxBufferedBytes
        // A message has 4 KiB, and what it is wrapped in.
        self.uncountedBodyBytes = 8 * 1024
        self.measuresLag = true
        self.bodyLimit = listener.bodyLimit(of:)
    }

    /// The admin listener's server.
    ///
    /// - Parameters:
    ///   - configuration: where it listens, and its bounds.
    ///   - maxConnections: how many connections it may hold.
    ///   - certificate: what it proves itself with; `nil` for plain HTTP.
    ///   - listener: what it serves.
    init(
        _ configuration: AdminListenerConfiguration,
        maxConnections: Int,
        certificate: ListenerCertificate?,
        listener: Listener
    ) {
        self.init(host: configuration.host, port: configuration.port, tls: certificate?.configuration)
        self.name = "admin"
        self.apply(configuration.bounds, listener)
        self.maxConnections = maxConnections
        self.bodyLimit = { _ in Administration.maxBodyBytes }
    }

    /// Takes the times that a listener allows, and has everything beyond it answered and counted.
    private mutating func apply(_ bounds: ConnectionBoundsConfiguration, _ listener: Listener) {
        self.keepAliveTimeout = bounds.keepAliveTimeout
        self.headTimeout = bounds.headTimeout
        self.bodyTimeout = bounds.bodyTimeout
        self.writeStallTimeout = bounds.writeStallTimeout
        self.refusalResponse = listener.response(to:_:)
        self.onCut = listener.note(_:)
    }
}

extension TLSConfiguration {
    /// A client's side of TLS, which trusts the authorities of a PEM file as it does the system's.
    package init(trusting path: String) throws {
        self = .makeClientConfiguration()
        do {
            self.additionalTrustRoots = [.certificates(try NIOSSLCertificate.fromPEMFile(path))]
        } catch {
            throw GatewayError(.invalid, "upstream.caFile: \(path) \(UpstreamConfiguration.badAuthorities)")
        }
    }
}

extension UpstreamConfiguration {
    /// Where access tokens may be asked for, and what may be sent without encryption.
    package var tokenHosts: TokenHosts {
        TokenHosts(self.allowedTokenHosts, plainHTTP: PlainHTTP(hosts: self.allowPlainHTTP))
    }

    fileprivate static let badAuthorities = "holds no certificate in PEM, or can't be read"

    /// Checks that the file of authorities, if there is one, can be used.
    ///
    /// - Throws: what is wrong with it.
    package func checkAuthorities() throws(ConfigurationProblems) {
        guard let file = self.caFile, (try? TLSConfiguration(trusting: file)) == nil else { return }
        let message = "\(file) \(Self.badAuthorities)"
        throw ConfigurationProblems([
            ConfigurationProblem(place: .unknown, key: "upstream.caFile", message: message)
        ])
    }
}
