import NIOCore

/// Everything an operator can set.
///
/// `GatewayConfiguration()` is the configuration without a file or environment. `load(file:environment:)` reads both.
package struct GatewayConfiguration: Sendable {
    /// The bytes of a master key.
    package static let masterKeyBytes = 32

    /// The data listener.
    package var http: HTTPListenerConfiguration

    /// The admin listener.
    package var admin: AdminListenerConfiguration

    /// The store.
    package var store: StoreConfiguration

    /// Rate limiting.
    package var limits: LimitsConfiguration

    /// How FCM is reached.
    package var upstream: UpstreamConfiguration

    /// The audit trail.
    package var audit: AuditConfiguration

    /// Logging.
    package var log: LogConfiguration

    /// Tracing.
    package var tracing: TracingConfiguration

    /// How many event loops serve requests; the number of cores unless told otherwise.
    package var eventLoops: Int

    /// The directory of the gateway's own files.
    package var dataDir: String

    /// The key that seals all other secrets, 32 bytes; only `config check` and `config show` do without one.
    package var masterKey: Redacted<[UInt8]>?

    /// The master key before this one, while stored secrets may still be sealed by it.
    package var previousMasterKey: Redacted<[UInt8]>?

    /// Creates a configuration; what is not named has its default.
    package init(
        http: HTTPListenerConfiguration = HTTPListenerConfiguration(),
        admin: AdminListenerConfiguration = AdminListenerConfiguration(),
        store: StoreConfiguration = StoreConfiguration(),
        limits: LimitsConfiguration = LimitsConfiguration(),
        upstream: UpstreamConfiguration = UpstreamConfiguration(),
        audit: AuditConfiguration = AuditConfiguration(),
        log: LogConfiguration = LogConfiguration(),
        tracing: TracingConfiguration = TracingConfiguration(),
        eventLoops: Int = System.coreCount,
        dataDir: String = "/var/lib/fcm-gateway",
        masterKey: Redacted<[UInt8]>? = nil,
        previousMasterKey: Redacted<[UInt8]>? = nil
    ) {
        self.http = http
        self.admin = admin
        self.store = store
        self.limits = limits
        self.upstream = upstream
        self.audit = audit
        self.log = log
        self.tracing = tracing
        self.eventLoops = eventLoops
        self.dataDir = dataDir
        self.masterKey = masterKey
        self.previousMasterKey = previousMasterKey
    }

    /// The database file's path.
    package var databasePath: String {
        self.store.databasePath(dataDir: self.dataDir)
    }

    /// The directory of the audit's spool.
    package var spoolDirectory: String {
        let path = self.audit.spoolDir
        guard !path.isEmpty else { return self.dataDir }
        guard !path.hasPrefix("/") else { return path }
        return self.dataDir.hasSuffix("/") ? self.dataDir + path : "\(self.dataDir)/\(path)"
    }

    /// What does not stop `config check`: above all, what would stop `serve`.
    package var warnings: [ConfigurationProblem] { self.missingSecrets }

    /// The secrets that are not set and without which `serve` does not start.
    private var missingSecrets: [ConfigurationProblem] {
        var missing: [ConfigurationProblem] = []
        if self.masterKey == nil { missing.append(Self.missingSecret("masterKey")) }
        if self.admin.token == nil { missing.append(Self.missingSecret("admin.token")) }
        return missing
    }

    /// The secrets that serving needs.
    ///
    /// - Returns: The master key and the admin token.
    /// - Throws: One problem for each that is missing.
    package func servingSecrets() throws(ConfigurationProblems) -> ServingSecrets {
        guard let masterKey = self.masterKey, let adminToken = self.admin.token else {
            throw ConfigurationProblems(self.missingSecrets)
        }
        return ServingSecrets(
            masterKey: masterKey,
            previousMasterKey: self.previousMasterKey,
            adminToken: adminToken
        )
    }

    /// What stands in the way of opening the store's secrets without a master key.
    package static var missingMasterKey: ConfigurationProblems {
        ConfigurationProblems([Self.missingSecret("masterKey")])
    }

    private static func missingSecret(_ path: String) -> ConfigurationProblem {
        let variable = ConfigurationKey.environmentName(path)
        return ConfigurationProblem(
            place: .variable(variable),
            key: path,
            message: "is not set, nor is \(variable)_FILE; serve does not start without it"
        )
    }
}
