package import EventLoopHTTP
package import GatewayCore
package import GatewayUpstream
import NIOCore

/// Everything an operator can set, in sections; a section that one part reads is that part's own struct.
///
/// The initial values are the defaults. ``ConfigurationTable`` says by which keys they are set and what they mean, and
/// ``ConfigurationInput`` reads them.
package struct GatewayConfiguration: Sendable {
    /// The data listener, where tenants' services connect.
    package struct DataListener: Sendable {
        /// Where it listens, and its bounds; the reliability document has the reasons, in sections 8 and 9.
        package var server = HTTPServerConfiguration(host: "0.0.0.0", port: 8080)
        package var tls = TLSFiles()
        /// Requests in flight at once; one tenant gets half of them, messages without high priority four fifths.
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
        /// The operators' token; only `config check` and `config show` do without one.
        package var token: Redacted<String>?

        fileprivate init() { self.server.maxConnections = 256 }
    }

    /// The PEM files that make a listener speak TLS.
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

    /// Rate limiting, whose state lives in memory.
    package struct Limits: Sendable {
        /// Not supported yet: a known key, so that setting it is refused by name.
        var redisURL = ""
        package var defaults = LimitPolicies()
    }

    /// Which upstream servers are told of the traces that requests belong to.
    package enum TracePropagation: String, Sendable, CaseIterable {
        case all
        case none
    }

    package var http = DataListener()
    package var admin = AdminListener()
    package var storeURL = "sqlite:gateway.sqlite"
    package var limits = Limits()
    package var upstream = UpstreamConfiguration()
    package var audit = AuditConfiguration()
    package var log = LogConfiguration()
    package var tracePropagation = TracePropagation.all
    package var eventLoops = System.coreCount
    package var dataDir = "/var/lib/fcm-gateway"
    /// The key that seals all other secrets, 32 bytes; only `config check` and `config show` do without one.
    package var masterKey: Redacted<[UInt8]>?
    package var previousMasterKey: Redacted<[UInt8]>?

    package init() {}

    static let sqliteScheme = "sqlite:"

    package var databasePath: String { self.path(String(self.storeURL.dropFirst(Self.sqliteScheme.count))) }

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
            .variable(variable),
            key: path,
            message: "is not set, nor is \(variable)_FILE; serve does not start without it"
        )
    }
}
