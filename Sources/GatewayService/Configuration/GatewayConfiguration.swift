package import EventLoopHTTP
package import GatewayCore
import GatewayStorage
import GatewayTracing
package import GatewayUpstream
import NIOCore
import RedisClient
package import RedisLimits

/// All settings of an operator, in sections. If only one part reads a section, the section is that part's own struct.
///
/// The initial values are the defaults. ``ConfigurationTable`` defines their keys and meaning, and
/// ``ConfigurationInput`` reads them.
package struct GatewayConfiguration: Sendable {
    /// The data listener, where tenants' services connect.
    package struct DataListener: Sendable {
        /// The address and the limits, which ``HTTPServerConfiguration`` explains.
        package var server = HTTPServerConfiguration(host: "0.0.0.0", port: 8080)
        package var tls = TLSFiles()
        /// The maximum number of requests in flight. One tenant gets at most half of them. Messages without high
        /// priority get at most four fifths.
        package var maxInFlight = 1_024
        package var maxLag = Duration.milliseconds(4)
        package var drainGrace = Duration.seconds(5)
        package var shutdownTimeout = Duration.seconds(25)

        fileprivate init() { self.server.maxBufferedBytes = 64 << 20 }
    }

    /// The admin listener, where operators, probes and Prometheus connect.
    package struct AdminListener: Sendable {
        package var server = HTTPServerConfiguration(host: "127.0.0.1", port: 8081)
        package var tls = TLSFiles()
        /// The operators' token. Only `config check` and `config show` work without this token.
        package var token: Redacted<String>?
        /// The names that requests may use for the listener, in lower case, besides `localhost` and addresses.
        package var allowedHosts: [String] = []
        package var servesConsole = true
        /// The folder of the manual's pages.
        package var docsDirectory = "/usr/share/fcm-gateway/docs"

        fileprivate init() { self.server.maxConnections = 256 }
    }

    /// The PEM files of a listener that speaks TLS.
    package struct TLSFiles: Sendable, Equatable {
        package var certificateFile: String?
        package var privateKeyFile: String?
        package var clientCAFile: String?

        package init(certificateFile: String? = nil, privateKeyFile: String? = nil, clientCAFile: String? = nil) {
            self.certificateFile = certificateFile
            self.privateKeyFile = privateKeyFile
            self.clientCAFile = clientCAFile
        }

        package var isPlain: Bool { self.certificateFile == nil }
    }

    /// The settings of a PostgreSQL store besides its address.
    package struct Store: Sendable {
        package var password: Redacted<String>?
        package var poolSize = 8
        /// True if `serve` migrates the schema by itself.
        package var migrates = false
        /// The length of a replica's lease. The replica renews the lease after a third of this time.
        package var lease = Duration.seconds(30)
        /// The longest time for which a directory snapshot is used while it can't be compared with the store.
        package var maxStale = Duration.seconds(900)
    }

    /// Rate limiting. Its state is in memory or, if replicas share it, in Redis.
    package struct Limits: Sendable {
        /// The server's address. Empty if limits are kept in memory.
        package var redisURL = ""
        package var redisPassword: Redacted<String>?
        /// The authorities of Redis' certificate, instead of the system's.
        package var redisCAFile: String?
        package var redisTimeout = Duration.milliseconds(25)
        package var whenRedisFails = RedisRateLimiter.Fallback.local
        /// True if each replica may deliberately allow the full limits by itself.
        package var perReplica = false
        package var device = RatePolicy.deviceDefaults
        package var deviceCollapsible = RatePolicy.deviceCollapsibleDefaults
        package var topic = RatePolicy.topicDefaults
        package var tenant = RatePolicy.tenantDefaults

        /// The policies of tenants without policies of their own.
        package var defaults: LimitPolicies {
            LimitPolicies(
                tenant: self.tenant,
                device: self.device,
                deviceCollapsible: self.deviceCollapsible,
                topic: self.topic
            )
        }
    }

    /// The traces of callers that are passed to FCM, and the receiver of the gateway's own spans.
    package struct Tracing: Sendable {
        /// The callers' traces that are passed to FCM.
        package enum Propagation: String, Sendable, CaseIterable {
            case all
            case none
        }

        package var propagation = Propagation.all
        /// Empty if no spans are recorded.
        package var otlpEndpoint = ""
        package var otlpHeaders: Redacted<String>?
        package var caFile: String?
        package var sampleRatio = 1.0
    }

    package var http = DataListener()
    package var admin = AdminListener()
    package var storeURL = "sqlite:gateway.sqlite"
    package var store = Store()
    package var limits = Limits()
    package var batches = BatchRunner.Configuration()
    package var upstream = UpstreamConfiguration()
    package var upstreamProxyPassword: Redacted<String>?
    package var audit = AuditLog.Configuration()
    package var log = LogConfiguration()
    package var tracing = Tracing()
    package var eventLoops = System.coreCount
    package var dataDir = "/var/lib/fcm-gateway"
    /// The 32-byte key that seals all other secrets. Only `config check` and `config show` work without this key.
    package var masterKey: Redacted<[UInt8]>?
    package var previousMasterKey: Redacted<[UInt8]>?

    package init() {}

    static let sqliteScheme = "sqlite:"

    /// The store's file, if it is SQLite's.
    package var databasePath: String { self.path(String(self.storeURL.dropFirst(Self.sqliteScheme.count))) }

    package var spoolDirectory: String {
        self.audit.spoolDir.isEmpty ? self.dataDir : self.path(self.audit.spoolDir)
    }

    /// The path of the audit's second sink, if it is a file.
    package var auditSinkPath: String? { self.audit.sinkFile.map(self.path) }

    /// Resolves a path relative to the data directory.
    private func path(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        return self.dataDir.hasSuffix("/") ? self.dataDir + path : "\(self.dataDir)/\(path)"
    }

    // MARK: Relations between values

    /// The problems in the relations between values that are each valid alone.
    var problems: [ConfigurationProblem] {
        var problems = Self.problems(self.http.tls, "http") + Self.problems(self.admin.tls, "admin")
        func report(_ key: String, or other: String? = nil, _ message: String) {
            problems.append(ConfigurationProblem(key: key, otherKey: other, message: message))
        }
        let plainHTTP = PlainHTTP(hosts: self.upstream.allowPlainHTTP)
        let endpoints = [
            ("upstream.legacyEndpoint", self.upstream.legacyEndpoint),
            ("upstream.v1Endpoint", self.upstream.v1Endpoint),
            ("upstream.iidEndpoint", self.upstream.iidEndpoint),
        ]
        for (key, endpoint) in endpoints where !plainHTTP.admits(endpoint: endpoint) {
            report(key, "must be https; \(PlainHTTP.exception)")
        }
        if self.upstream.timeout > self.upstream.deadline {
            report(
                "upstream.timeoutMs",
                or: "upstream.deadlineMs",
                "upstream.timeoutMs must not exceed upstream.deadlineMs"
            )
        }
        // A lease is renewed between a third and a half of its length. An attempt may begin just before the renewal,
        // so half a lease must outlast an attempt.
        if !self.storeURL.hasPrefix(Self.sqliteScheme), self.store.lease / 2 <= self.upstream.timeout {
            report(
                "store.leaseMs",
                or: "upstream.timeoutMs",
                "store.leaseMs must be more than twice upstream.timeoutMs"
            )
        }
        if self.limits.perReplica, !self.limits.redisURL.isEmpty {
            report(
                "limits.perReplica",
                or: "limits.redisUrl",
                "limits.perReplica means limits in memory; leave out either it or limits.redisUrl"
            )
        }
        if self.upstream.connectTimeout > self.upstream.timeout {
            report(
                "upstream.connectTimeoutMs",
                or: "upstream.timeoutMs",
                "upstream.connectTimeoutMs must not exceed upstream.timeoutMs"
            )
        }
        if let previous = self.previousMasterKey, previous.revealed == self.masterKey?.revealed {
            report("previousMasterKey", or: "masterKey", "is the same key as masterKey; leave it out")
        }
        if self.http.server.port == self.admin.server.port, self.http.server.port != 0 {
            report("admin.port", or: "http.port", "admin.port and http.port must differ")
        }
        return problems
    }

    private static func problems(_ files: TLSFiles, _ section: String) -> [ConfigurationProblem] {
        let (certificate, key) = ("tls.certificateFile", "tls.privateKeyFile")
        let problem: (name: String, missing: String)? =
            switch (files.certificateFile, files.privateKeyFile) {
            case (nil, nil): files.clientCAFile == nil ? nil : ("tls.clientCaFile", "\(certificate) and \(key)")
            case (nil, .some): (key, certificate)
            case (.some, nil): (certificate, key)
            case (.some, .some): nil
            }
        guard let problem else { return [] }
        return [ConfigurationProblem(key: "\(section).\(problem.name)", message: "needs \(problem.missing)")]
    }

    /// The problems that keep `serve` from starting, but no other command.
    ///
    /// PostgreSQL is for several replicas. Without Redis, each of them would allow the full limits by itself.
    var servingProblems: [ConfigurationProblem] {
        guard self.postgreSQL != nil, self.limits.redisURL.isEmpty, !self.limits.perReplica else { return [] }
        return [
            ConfigurationProblem(
                key: "limits.redisUrl",
                otherKey: "store.url",
                message: "each replica on PostgreSQL would allow the full limits by itself; set limits.redisUrl, "
                    + "or limits.perReplica to true if that is intended"
            )
        ]
    }

    /// The warnings that `serve` logs at each start. They do not stop it.
    ///
    /// Redis keys are derived from the store's secrets, so gateways of different stores never share limits.
    var servingWarnings: [ConfigurationProblem] {
        var warnings = self.transportWarnings
        if self.postgreSQL == nil, !self.limits.redisURL.isEmpty {
            warnings.append(
                ConfigurationProblem(
                    key: "limits.redisUrl",
                    message: "no other gateway shares these limits, because the store is SQLite; "
                        + "replicas of one PostgreSQL do"
                )
            )
        }
        return warnings
    }

    /// The secrets that leave this machine unencrypted, or go to a server whose certificate is not verified.
    private var transportWarnings: [ConfigurationProblem] {
        var warnings: [ConfigurationProblem] = []
        for (section, host, tls, secret) in [
            ("http", self.http.server.host, self.http.tls, "API keys travel"),
            ("admin", self.admin.server.host, self.admin.tls, "the admin token travels"),
        ] where tls.isPlain && !Self.isThisMachine(host) {
            warnings.append(
                ConfigurationProblem(
                    key: "\(section).host",
                    message: "\(secret) in the clear on \(host); set \(section).tls.certificateFile, or listen on "
                        + "127.0.0.1 behind a proxy that speaks TLS"
                )
            )
        }
        if let settings = self.postgreSQL, let (hosts, sslMode) = PostgreSQLSettings.transport(of: settings.url),
            !["verify-full", "verify-ca"].contains(sslMode), !hosts.allSatisfy(Self.isThisMachine)
        {
            warnings.append(
                ConfigurationProblem(
                    key: "store.url",
                    message:
                        "sslmode=\(sslMode) does not verify the server: an impostor may get the password and every "
                        + "row; use sslmode=verify-full"
                )
            )
        }
        if let location = try? RedisLocation(self.limits.redisURL), !location.usesTLS,
            !location.endpoints.allSatisfy({ Self.isThisMachine($0.host) })
        {
            warnings.append(
                ConfigurationProblem(
                    key: "limits.redisUrl",
                    message: "Redis is not reached by TLS: others may read its password and change limits; "
                        + "use rediss:// or rediss+sentinel://"
                )
            )
        }
        if self.tracing.otlpHeaders != nil, let receiver = try? OTLPReceiver(self.tracing.otlpEndpoint).origin,
            receiver.scheme == .http, !Self.isThisMachine(receiver.host)
        {
            let message = "tracing.otlpHeaders travels in the clear; use https://"
            warnings.append(ConfigurationProblem(key: "tracing.otlpEndpoint", message: message))
        }
        return warnings
    }

    /// True for loopback and for a Unix socket, whose name is a path or empty.
    private static func isThisMachine(_ host: String) -> Bool {
        if host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") || host == "localhost" { return true }
        guard let address = try? SocketAddress(ipAddress: host, port: 0) else { return false }
        return host.hasPrefix("127.") || address.ipAddress == "::1"
    }

    // MARK: Secrets

    /// The problems that do not fail `config check`: missing secrets that `serve` needs, and the warnings at its start.
    package var warnings: [ConfigurationProblem] { self.missingSecrets + self.servingWarnings }

    private var missingSecrets: [ConfigurationProblem] {
        var problems = self.masterKey == nil ? Self.missingMasterKey.problems : []
        if self.admin.token == nil {
            let consequence = "serve does not start without it, unless the store has a token of the role admin"
            problems.append(Self.missingSecret("admin.token", consequence))
        }
        return problems
    }

    /// Returns the secrets that serving needs. Throws a problem for each missing secret.
    package func servingSecrets() throws(ConfigurationProblems) -> ServingSecrets {
        guard let masterKey = self.masterKey else { throw ConfigurationProblems(self.missingSecrets) }
        return ServingSecrets(
            masterKey: masterKey,
            previousMasterKey: self.previousMasterKey,
            adminToken: self.admin.token
        )
    }

    /// The problem if the store's secrets are to be opened without a master key.
    package static var missingMasterKey: ConfigurationProblems {
        ConfigurationProblems([Self.missingSecret("masterKey", "serve does not start without it")])
    }

    private static func missingSecret(_ path: String, _ consequence: String) -> ConfigurationProblem {
        let variable = ConfigurationKey.variable(path)
        return ConfigurationProblem(
            .variable(variable),
            key: path,
            message: "is not set, nor is \(variable)_FILE; \(consequence). fcm-gateway init makes one"
        )
    }
}
