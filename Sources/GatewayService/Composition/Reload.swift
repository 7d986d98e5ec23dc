import CoreMetrics
import Crypto
import EventLoopHTTP
import GatewayCore
import GatewayUpstream
import Logging
import Metrics
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A configuration whose files have all been read and checked. A start reads one, and each reload reads a new one.
struct LoadedConfiguration: Sendable {
    /// All settings, without the secrets.
    var configuration: GatewayConfiguration
    var certificates: ListenerCertificates
    /// The identity of each value, by the key's path. The identity of a secret is a digest.
    var fingerprints: [String: String]
    let sources: ConfigurationInput.Sources

    /// Reads and checks everything. Throws all problems that would keep `serve` from starting, by place and key.
    static func read(
        _ input: ConfigurationInput
    ) throws(ConfigurationProblems) -> (LoadedConfiguration, ServingSecrets) {
        let given = try input.configuration()
        try input.checkServing(given)
        let secrets = try given.servingSecrets()
        return (try LoadedConfiguration(given, input), secrets)
    }

    private init(_ given: GatewayConfiguration, _ input: ConfigurationInput) throws(ConfigurationProblems) {
        self.certificates = try input.certificates(given)
        try input.checkAuthorities(given)
        var configuration = given
        configuration.masterKey = nil
        configuration.previousMasterKey = nil
        configuration.admin.token = nil
        self.configuration = configuration
        self.fingerprints = Dictionary(
            uniqueKeysWithValues: ConfigurationTable.keys.map { ($0.path, $0.fingerprint(given)) }
        )
        self.sources = input.sources
    }
}

extension ConfigurationInput {
    /// Returns the listeners' certificates. Throws the faults of their files, by place and key.
    package func certificates(_ configuration: GatewayConfiguration) throws(ConfigurationProblems)
        -> ListenerCertificates
    {
        do {
            return try ListenerCertificates(configuration)
        } catch {
            throw ConfigurationProblems(error.problems.map(self.sources.locate))
        }
    }

    /// Checks what only `serve` needs, except the secrets.
    package func checkServing(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        let problems = configuration.servingProblems.map(self.sources.locate)
        guard problems.isEmpty else { throw ConfigurationProblems(problems) }
    }

    /// Checks that the authority files for upstream servers, Redis and the receiver of spans can be used.
    package func checkAuthorities(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        do throws(GatewayError) {
            _ = try configuration.upstream.tls()
        } catch {
            let problem = ConfigurationProblem(key: "upstream.caFile", message: error.message)
            throw ConfigurationProblems([self.sources.locate(problem)])
        }
        do throws(ConfigurationProblems) {
            _ = try configuration.limits.redisTrustRoots()
            _ = try configuration.tracing.tls()
        } catch {
            throw ConfigurationProblems(error.problems.map(self.sources.locate))
        }
    }
}

/// Reloads the configuration of a running gateway, completely or not at all.
///
/// Nothing changes before everything has been read and checked. Settings that need a restart keep their values and are
/// named in the log.
final class ConfigurationReloader: Sendable {
    /// The parts of a gateway whose settings may change at run time.
    struct Parts: Sendable {
        let directory: Directory
        let dataServer: HTTPServer
        let adminServer: HTTPServer
        let upstream: UpstreamSettings
        /// 1 if the last reload succeeded, else 0.
        let lastReload: Meter

        fileprivate func reload(_ configuration: GatewayConfiguration) async {
            await self.directory.use(defaultLimits: configuration.limits.defaults)
            self.upstream.reload(configuration.upstream)
        }
    }

    private let parts: Parts
    private let logLevel: LogLevelSetting
    private let clock: any WallClock
    private let logger: Logger
    private let load: @Sendable () throws(ConfigurationProblems) -> LoadedConfiguration
    /// The configuration in force.
    private let state: Mutex<LoadedConfiguration>

    init(
        started: LoadedConfiguration,
        parts: Parts,
        logLevel: LogLevelSetting,
        clock: any WallClock,
        logger: Logger,
        load: @escaping @Sendable () throws(ConfigurationProblems) -> LoadedConfiguration
    ) {
        self.parts = parts
        self.logLevel = logLevel
        self.clock = clock
        self.logger = logger
        self.load = load
        self.state = Mutex(started)
        self.warnOfTime(started)
    }

    /// Reloads the configuration. If there is a problem, logs it and changes nothing.
    ///
    /// Only one call may run at a time, because a reload must not overtake another.
    func reload() async {
        do {
            let loaded = try self.load()
            let current = self.state.withLock { $0 }
            try self.refuseUntimely(loaded, instead: current.certificates)
            try self.use(loaded.certificates, instead: current.certificates)
            // From here on, nothing can fail.
            await self.use(loaded, instead: current)
        } catch {
            self.parts.lastReload.set(0)
            for problem in error.problems {
                self.logger.error(
                    "The configuration was not reloaded; the previous one stays in force.",
                    metadata: problem.metadata
                )
            }
        }
    }

    // MARK: Certificates

    /// Refuses a new certificate that has expired or is not valid yet. An unchanged certificate is never refused, so
    /// that the rest of the configuration can be reloaded even if the certificate in use has expired.
    private func refuseUntimely(
        _ loaded: LoadedConfiguration,
        instead current: ListenerCertificates
    ) throws(ConfigurationProblems) {
        let now = self.clock.now()
        let problems = [(current.data, loaded.certificates.data), (current.admin, loaded.certificates.admin)]
            .compactMap { old, new -> ConfigurationProblem? in
                guard let old, let new, !new.isSame(as: old) else { return nil }
                return new.untimeliness(at: now).map(loaded.sources.locate)
            }
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
        self.warnOfTime(loaded)
    }

    private func warnOfTime(_ loaded: LoadedConfiguration) {
        for certificate in [loaded.certificates.data, loaded.certificates.admin] {
            guard let problem = certificate?.untimeliness(at: self.clock.now()) else { continue }
            self.logger.warning(
                "Clients will reject a listener's certificate.",
                metadata: loaded.sources.locate(problem).metadata
            )
        }
    }

    private func use(
        _ certificates: ListenerCertificates,
        instead current: ListenerCertificates
    ) throws(ConfigurationProblems) {
        do {
            // These certificates and keys were checked a moment ago, so the two calls do not fail.
            if current.data != nil, let data = certificates.data {
                try self.parts.dataServer.reload(tls: data.configuration)
            }
            if current.admin != nil, let admin = certificates.admin {
                try self.parts.adminServer.reload(tls: admin.configuration)
            }
        } catch {
            throw ConfigurationProblems([ConfigurationProblem(message: "TLS can't be set up: \(error)")])
        }
    }

    // MARK: Changes

    private func use(_ loaded: LoadedConfiguration, instead current: LoadedConfiguration) async {
        var next = current
        next.certificates = loaded.certificates
        var postponed: Set<String> = []
        // All clients of a listener would have to switch between plain HTTP and TLS at the same moment.
        if (current.certificates.data == nil) != (loaded.certificates.data == nil) {
            next.certificates.data = current.certificates.data
            postponed.formUnion(Self.tlsKeys("http"))
        }
        if (current.certificates.admin == nil) != (loaded.certificates.admin == nil) {
            next.certificates.admin = current.certificates.admin
            postponed.formUnion(Self.tlsKeys("admin"))
        }
        var changed: [String] = []
        var waiting: [String] = []
        for key in ConfigurationTable.keys where loaded.fingerprints[key.path] != current.fingerprints[key.path] {
            if key.isReloadable, !postponed.contains(key.path) {
                changed.append(key.path)
                key.copy(&next.configuration, loaded.configuration)
                next.fingerprints[key.path] = loaded.fingerprints[key.path]
            } else {
                waiting.append(key.path)
            }
        }
        await self.parts.reload(next.configuration)
        self.logLevel.change(to: next.configuration.log)
        self.state.withLock { $0 = next }
        for key in waiting {
            self.logger.warning(
                "A changed setting takes effect at the next start only.",
                metadata: ["key": "\(key)"]
            )
        }
        self.parts.lastReload.set(1)
        self.logger.notice(
            "The configuration was reloaded.",
            metadata: ["changed": "\(changed.joined(separator: ","))"]
        )
    }

    private static func tlsKeys(_ section: String) -> Set<String> {
        Set(ConfigurationTable.keys.map(\.path).filter { $0.hasPrefix("\(section).tls.") })
    }
}

/// Reloads the configuration at every SIGHUP, one at a time.
struct ReloadService: Service {
    /// The signals. They are trapped before the start begins, because a SIGHUP during the start must not end the
    /// process.
    let signals: UnixSignalsSequence
    let reloader: ConfigurationReloader
    /// Reopens files that were moved away, even if the configuration can't be read.
    let reopen: @Sendable () async -> Void

    func run() async throws {
        // Only the next reopening waits for this one, so a disk that hangs delays neither a reload nor a stop.
        var reopening: Task<Void, Never>?
        defer { reopening?.cancel() }
        for await _ in self.signals.cancelOnGracefulShutdown() {
            reopening = Task { [reopening] in
                await reopening?.value
                await self.reopen()
            }
            await self.reloader.reload()
        }
    }
}

extension ConfigurationProblem {
    /// The problem as metadata of a log line.
    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["problem": "\(self.message)"]
        if let key = self.key { metadata["key"] = "\(key)" }
        switch self.source {
        case .file(let name, let line):
            metadata["file"] = "\(name)"
            if let line { metadata["line"] = .stringConvertible(line) }
        case .variable(let name): metadata["variable"] = "\(name)"
        case .builtIn: break
        }
        return metadata
    }
}
