import EventLoopHTTP
import GatewayCore
import GatewayHTTP
import GatewayUpstream
import NIOSSL

extension LimitPolicies {
    /// The configured defaults.
    ///
    /// - Throws: `invalid` for a policy that can't be kept.
    init(_ defaults: RateLimitDefaultsConfiguration) throws(GatewayError) {
        self.init(
            tenant: try Self.policies(defaults.tenant),
            device: try Self.policies(defaults.device),
            deviceCollapsible: try Self.policies(defaults.deviceCollapsible),
            topic: try Self.policies(defaults.topic)
        )
    }

    private static func policies(_ list: [RatePolicyConfiguration]) throws(GatewayError) -> [RatePolicy] {
        guard list.count <= Self.maxPoliciesPerScope else {
            throw GatewayError(.invalid, "limits.defaults: at most \(Self.maxPoliciesPerScope) policies for one scope")
        }
        var policies: [RatePolicy] = []
        for item in list {
            guard let policy = RatePolicy(rate: item.rate, periodSeconds: item.perS, burst: item.burst) else {
                throw GatewayError(.invalid, "limits.defaults: a policy must refill its burst within 30 days")
            }
            policies.append(policy)
        }
        return policies
    }
}

extension GatewayCore.AuditConfiguration {
    /// The configured queue and interval.
    init(_ configuration: AuditConfiguration) {
        self.init(queueCapacity: configuration.queueRecords, flushInterval: configuration.flushInterval)
    }
}

extension GatewayUpstream.UpstreamConfiguration {
    /// The configured endpoints, timeouts and bounds.
    ///
    /// - Throws: what is wrong with the authorities' file.
    init(_ configuration: UpstreamConfiguration, tokenHosts: TokenHosts) throws {
        var client = HTTPClientConfiguration(tls: try configuration.caFile.map(TLSConfiguration.init(trusting:)))
        client.connectTimeout = configuration.connectTimeout
        client.maxConnectionsPerLoop = configuration.maxConnectionsPerLoop
        self.init(
            legacyEndpoint: configuration.legacyEndpoint,
            v1Endpoint: configuration.v1Endpoint,
            iidEndpoint: configuration.iidEndpoint,
            topicAPI: configuration.topicAPI.part,
            tokenHosts: tokenHosts,
            attemptTimeout: configuration.timeout,
            client: client
        )
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
    /// - Throws: what is wrong with the certificate's files.
    init(_ configuration: HTTPListenerConfiguration, metrics: HTTPMetrics, gate: LoadGate) throws {
        self.init(
            host: configuration.host,
            port: configuration.port,
            tls: try configuration.tls.map(TLSConfiguration.init(files:))
        )
        self.keepAliveTimeout = configuration.keepAliveTimeout
        self.headTimeout = configuration.headTimeout
        self.bodyTimeout = configuration.bodyTimeout
        self.maxConnections = configuration.maxConnections
        self.maxBufferedBytes = configuration.maxBufferedBytes
        self.measuresLag = true
        self.bodyLimit = DataListener.bodyLimit(of:)
        self.refusalResponse = ServerRefusals(metrics: metrics, gate: gate).response(to:)
    }

    /// The admin listener's server.
    ///
    /// - Throws: what is wrong with the certificate's files.
    init(_ configuration: AdminListenerConfiguration, metrics: HTTPMetrics) throws {
        self.init(
            host: configuration.host,
            port: configuration.port,
            tls: try configuration.tls.map(TLSConfiguration.init(files:))
        )
        self.refusalResponse = ServerRefusals(metrics: metrics).response(to:)
    }
}

extension TLSConfiguration {
    /// A client's side of TLS, which trusts the authorities of a PEM file as it does the system's.
    fileprivate init(trusting path: String) throws {
        self = .makeClientConfiguration()
        do {
            self.additionalTrustRoots = [.certificates(try NIOSSLCertificate.fromPEMFile(path))]
        } catch {
            throw GatewayError(.invalid, "upstream.caFile: \(path) holds no certificate in PEM, or can't be read")
        }
    }

    /// A server's side of TLS, read from PEM files; with a client CA, only clients with a certificate of its are let in.
    fileprivate init(files: TLSFilesConfiguration) throws {
        self = .makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(files.certificateFile).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: files.privateKeyFile, format: .pem))
        )
        if let clientCAFile = files.clientCAFile {
            self.trustRoots = .file(clientCAFile)
            self.certificateVerification = .noHostnameVerification
        }
    }
}
