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

/// A configuration with everything that it names read and checked: what `serve` starts with, and what a reload brings.
struct LoadedConfiguration: Sendable {
    /// All settings, without the secrets.
    var configuration: GatewayConfiguration
    var certificates: ListenerCertificates
    /// Tells values apart, by the keys' paths; of secrets, digests.
    var fingerprints: [String: String]
    let sources: ConfigurationInput.Sources

    /// Reads and checks everything; throws everything that would keep `serve` from starting, by place and key.
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
    /// The listeners' certificates; throws what is wrong with their files, by place and key.
    package func certificates(_ configuration: GatewayConfiguration) throws(ConfigurationProblems)
        -> ListenerCertificates
    {
        do {
            return try ListenerCertificates(configuration)
        } catch {
            throw ConfigurationProblems(error.problems.map(self.sources.locate))
        }
    }

    /// Checks what only `serve` needs, but for the secrets.
    package func checkServing(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        let problems = configuration.servingProblems.map(self.sources.locate)
        guard problems.isEmpty else { throw ConfigurationProblems(problems) }
    }

    /// Checks that the files of authorities of upstream servers, Redis and the receiver of spans can be used.
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

/// The parts of a gateway that take other settings while they work.
struct ReloadableParts: Sendable {
    let directory: Directory
    let dataServer: HTTPServer
    let adminServer: HTTPServer
    let upstream: UpstreamSettings
    /// Whether the last reload was good.
    let lastReload: Meter

    fileprivate func reload(_ configuration: GatewayConfiguration) async {
        await self.directory.use(defaultLimits: configuration.limits.defaults)
        self.upstream.reload(configuration.upstream)
    }
}

/// Reads the configuration anew and puts it in force while the gateway runs, whole or not at all.
///
/// Nothing is changed before everything was read and checked. Settings that only a start can take keep their values and
/// are named in the log.
final class ConfigurationReloader: Sendable {
    private let parts: ReloadableParts
    private let logLevel: LogLevelSetting
    private let clock: any WallClock
    private let logger: Logger
    private let load: @Sendable () throws(ConfigurationProblems) -> LoadedConfiguration
    /// What is in force.
    private let state: Mutex<LoadedConfiguration>

    init(
        started: LoadedConfiguration,
        parts: ReloadableParts,
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

    /// Logs what is wrong, and then changes nothing. One caller at a time: reloads must not overtake each other.
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
                    "The configuration was not reloaded; what was in force stays so.",
                    metadata: problem.metadata
                )
            }
        }
    }

    // MARK: Certificates

    /// A certificate whose time is over, or has not come, does not take the place of another. The one in use may expire:
    /// then the files say nothing new, and the rest of the configuration is as good as ever.
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
                "Clients will not accept a listener's certificate.",
                metadata: loaded.sources.locate(problem).metadata
            )
        }
    }

    private func use(
        _ certificates: ListenerCertificates,
        instead current: ListenerCertificates
    ) throws(ConfigurationProblems) {
        do {
            // Made from what was found to fit together a moment ago, so these two do not fail.
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

    // MARK: What has changed

    private func use(_ loaded: LoadedConfiguration, instead current: LoadedConfiguration) async {
        var next = current
        next.certificates = loaded.certificates
        var postponed: Set<String> = []
        // Between plain HTTP and TLS, a listener's clients would have to change in the same moment.
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
                "A setting has changed that takes effect with the next start only.",
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

/// Reloads the configuration at every SIGHUP, one after the other.
struct ReloadService: Service {
    /// The signals, trapped since before the gateway began to start: a SIGHUP must not end it then either.
    let signals: UnixSignalsSequence
    let reloader: ConfigurationReloader
    /// Opens what was moved away anew; done even when the configuration can't be read.
    let reopen: @Sendable () async -> Void

    func run() async throws {
        // A disk that hangs keeps neither a reload waiting nor a stop: this is waited for by the next one alone.
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
    /// The problem as a line of the log has it.
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
