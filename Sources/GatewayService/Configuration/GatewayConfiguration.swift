package import EventLoopHTTP
package import GatewayCore
package import GatewayUpstream
import NIOCore

/// Everything an operator can set, in sections; a section that one part reads is that part's own struct.
///
/// The initial values are the defaults. ``ConfigurationTable`` says by which keys the properties are set, and
/// ``ConfigurationInput`` reads them.
package struct GatewayConfiguration: Sendable {
    /// The data listener, where tenants' services connect.
    package struct DataListener: Sendable {
        /// Where it listens, and its bounds; the reliability document has the reasons, in sections 8 and 9.
        package var server = HTTPServerConfiguration(host: "0.0.0.0", port: 8080)
        package var tls = TLSFiles()
        /// Requests in flight at once; one tenant gets half of them, messages without high priority four fifths.
        package var maxInFlight = 1_024
        /// How long requests may have waited for a loop that is behind all the time before it sheds them.
        package var maxLag = Duration.milliseconds(4)
        /// How long after SIGTERM new requests are still accepted while `/readyz` answers 503.
        package var drainGrace = Duration.seconds(5)
        /// How long requests in flight may take to finish once the grace is over.
        package var shutdownTimeout = Duration.seconds(25)

        fileprivate init() { self.server.maxBufferedBytes = 64 << 20 }
    }

    /// The admin listener, where operators, probes and Prometheus connect.
    package struct AdminListener: Sendable {
        package var server = HTTPServerConfiguration(host: "127.0.0.1", port: 8081)
        package var tls = TLSFiles()
        /// The operators' token; only `config check` and `config show` do without one.
        package var token: Redacted<String>?

        fileprivate init() { self.server.maxConnections = 256 }
    }

    /// The PEM files that make a listener speak TLS.
    package struct TLSFiles: Sendable, Equatable {
        /// The certificate chain's path, leaf first.
        package var certificateFile: String?
        package var privateKeyFile: String?
        /// The path of the authorities whose client certificates are demanded; nil asks for none.
        package var clientCAFile: String?

        package init(certificateFile: String? = nil, privateKeyFile: String? = nil, clientCAFile: String? = nil) {
            self.certificateFile = certificateFile
            self.privateKeyFile = privateKeyFile
            self.clientCAFile = clientCAFile
        }

        /// Whether the listener speaks plain HTTP.
        package var isPlain: Bool { self.certificateFile == nil }
    }

    /// Rate limiting, whose state lives in memory.
    package struct Limits: Sendable {
        /// Not supported yet: a known key, so that setting it is refused by name.
        var redisURL = ""
        /// The policies of tenants that have none of their own.
        package var defaults = LimitPolicies()
    }

    /// Which upstream servers are told of the traces that requests belong to.
    package enum TracePropagation: String, Sendable, CaseIterable {
        case all
        case none
    }

    package var http = DataListener()
    package var admin = AdminListener()
    /// The store's address: `sqlite:` and a path, relative to ``dataDir`` unless absolute.
    package var storeURL = "sqlite:gateway.sqlite"
    package var limits = Limits()
    package var upstream = UpstreamConfiguration()
    package var audit = AuditConfiguration()
    package var log = LogConfiguration()
    package var tracePropagation = TracePropagation.all
    /// How many event loops serve requests; the number of cores unless told otherwise.
    package var eventLoops = System.coreCount
    /// The directory of the gateway's own files.
    package var dataDir = "/var/lib/fcm-gateway"
    /// The key that seals all other secrets, 32 bytes; only `config check` and `config show` do without one.
    package var masterKey: Redacted<[UInt8]>?
    /// The master key before this one, while stored secrets may still be sealed by it.
    package var previousMasterKey: Redacted<[UInt8]>?

    package init() {}

    /// The scheme of the embedded store.
    static let sqliteScheme = "sqlite:"

    /// The database file's path.
    package var databasePath: String { self.path(String(self.storeURL.dropFirst(Self.sqliteScheme.count))) }

    /// The directory of the audit's spool.
    package var spoolDirectory: String {
        self.audit.spoolDir.isEmpty ? self.dataDir : self.path(self.audit.spoolDir)
    }

    /// The path of the audit's second sink, if it is a file.
    package var auditSinkPath: String? { self.audit.sinkFile.map(self.path) }

    /// A path that is relative to the data directory.
    private func path(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        return self.dataDir.hasSuffix("/") ? self.dataDir + path : "\(self.dataDir)/\(path)"
    }

    // MARK: What several values must have in common

    /// What is wrong with the values together, although each can be used by itself.
    var problems: [ConfigurationProblem] {
        var problems = Self.problems(self.http.tls, "http") + Self.problems(self.admin.tls, "admin")
        func report(_ key: String, or other: String? = nil, _ message: String) {
            problems.append(ConfigurationProblem(place: .unknown, key: key, otherKey: other, message: message))
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
        return [
            ConfigurationProblem(
                place: .unknown,
                key: "\(section).\(problem.name)",
                message: "needs \(problem.missing)"
            )
        ]
    }

    // MARK: Secrets

    /// What does not stop `config check`: the secrets without which `serve` does not start.
    package var warnings: [ConfigurationProblem] {
        [("masterKey", self.masterKey == nil), ("admin.token", self.admin.token == nil)].filter { $0.1 }
            .map { Self.missingSecret($0.0) }
    }

    /// The secrets that serving needs; throws one problem for each that is missing.
    package func servingSecrets() throws(ConfigurationProblems) -> ServingSecrets {
        guard let masterKey = self.masterKey, let adminToken = self.admin.token else {
            throw ConfigurationProblems(self.warnings)
        }
        return ServingSecrets(masterKey: masterKey, previousMasterKey: self.previousMasterKey, adminToken: adminToken)
    }

    /// What stands in the way of opening the store's secrets without a master key.
    package static var missingMasterKey: ConfigurationProblems {
        ConfigurationProblems([Self.missingSecret("masterKey")])
    }

    private static func missingSecret(_ path: String) -> ConfigurationProblem {
        let variable = ConfigurationKey.variable(path)
        return ConfigurationProblem(
            place: .variable(variable),
            key: path,
            message: "is not set, nor is \(variable)_FILE; serve does not start without it"
        )
    }
}
