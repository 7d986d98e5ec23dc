import CoreMetrics
import EventLoopHTTP
import GatewayCore
import Logging
import Synchronization

/// Reads the configuration anew and puts it in force while the gateway runs, whole or not at all.
///
/// Nothing is changed before everything was read and checked. Settings that only a start can take keep their values and
/// are named in the log.
final class ConfigurationReloader: Sendable {
    private struct State {
        var certificates: ListenerCertificates
        /// Of the values in force.
        var fingerprints: [String: String]
    }

    private let parts: ReloadableParts
    private let logLevel: LogLevelSetting
    private let clock: any WallClock
    private let logger: Logger
    private let load: @Sendable () throws(ConfigurationProblems) -> LoadedConfiguration
    private let state: Mutex<State>

    /// A reloader of a gateway that was started with a configuration.
    ///
    /// - Parameters:
    ///   - started: what is in force.
    ///   - parts: what takes other settings.
    ///   - logLevel: what is logged.
    ///   - clock: tells whether certificates have expired.
    ///   - logger: hears of each reload.
    ///   - load: reads the configuration anew.
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
        self.state = Mutex(State(certificates: started.certificates, fingerprints: started.fingerprints))
        self.warnOfTime(started)
    }

    /// Reads the configuration anew and puts it in force; what is wrong with it is logged, and nothing changes.
    ///
    /// One caller at a time: reloads are not meant to overtake each other.
    func reload() {
        do {
            let loaded = try self.load()
            let current = self.state.withLock { $0.certificates }
            try self.refuseUntimely(loaded, instead: current)
            try self.use(loaded.certificates, instead: current)
            // From here on, nothing can fail.
            self.parts.directory.use(defaultLimits: loaded.limits)
            self.parts.requestDeadline.change(to: loaded.configuration.upstream.deadline)
            self.parts.attemptTimeout.change(to: loaded.configuration.upstream.timeout)
            // What may be sent without encryption has been judged of all that is stored, and stays until the next start.
            self.parts.tokenHosts.change(
                to: TokenHosts(
                    loaded.configuration.upstream.allowedTokenHosts,
                    plainHTTP: self.parts.tokenHosts.current.plainHTTP
                )
            )
            self.logLevel.change(to: loaded.configuration.log)
            self.finish(loaded, replacing: current)
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

    /// A certificate whose time is over, or has not come, does not take the place of another.
    ///
    /// The one in use may expire: then the files say nothing new, and the rest of the configuration is as good as ever.
    private func refuseUntimely(
        _ loaded: LoadedConfiguration,
        instead current: ListenerCertificates
    ) throws(ConfigurationProblems) {
        let now = self.clock.now()
        let problems = [(current.data, loaded.certificates.data), (current.admin, loaded.certificates.admin)]
            .compactMap { old, new -> ConfigurationProblem? in
                guard let old, let new, !new.isSame(as: old) else { return nil }
                return new.untimeliness(at: now).map(loaded.located)
            }
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
        self.warnOfTime(loaded)
    }

    private func warnOfTime(_ loaded: LoadedConfiguration) {
        for certificate in [loaded.certificates.data, loaded.certificates.admin] {
            guard let problem = certificate?.untimeliness(at: self.clock.now()) else { continue }
            self.logger.warning(
                "Clients will not accept a listener's certificate.",
                metadata: loaded.located(problem).metadata
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
            throw ConfigurationProblems([
                ConfigurationProblem(place: .unknown, message: "TLS can't be set up: \(error)")
            ])
        }
    }

    // MARK: What has changed

    private func finish(_ loaded: LoadedConfiguration, replacing current: ListenerCertificates) {
        let old = self.state.withLock { $0.fingerprints }
        var certificates = loaded.certificates
        var postponed: Set<String> = []
        // Between plain HTTP and TLS, a listener's clients would have to change in the same moment.
        if (current.data == nil) != (certificates.data == nil) {
            certificates.data = current.data
            postponed.formUnion(Self.tlsKeys("http"))
        }
        if (current.admin == nil) != (certificates.admin == nil) {
            certificates.admin = current.admin
            postponed.formUnion(Self.tlsKeys("admin"))
        }
        var fingerprints = old
        var changed: [String] = []
        var waiting: [String] = []
        for key in ConfigurationSchema.keys where loaded.fingerprints[key.path] != old[key.path] {
            if key.isReloadable, !postponed.contains(key.path) {
                changed.append(key.path)
                fingerprints[key.path] = loaded.fingerprints[key.path]
            } else {
                waiting.append(key.path)
            }
        }
        self.state.withLock { $0 = State(certificates: certificates, fingerprints: fingerprints) }
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
        Set(ConfigurationSchema.keys.map(\.path).filter { $0.hasPrefix("\(section).tls.") })
    }
}

extension ConfigurationProblem {
    /// The problem's parts for the log.
    fileprivate var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["problem": "\(self.message)"]
        if let key = self.key { metadata["key"] = "\(key)" }
        switch self.place {
        case .file(let name, let line):
            metadata["file"] = "\(name)"
            if let line { metadata["line"] = "\(line)" }
        case .variable(let name):
            metadata["variable"] = "\(name)"
        case .unknown:
            break
        }
        return metadata
    }
}
