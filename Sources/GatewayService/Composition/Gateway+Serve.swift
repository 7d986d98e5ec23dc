import EventLoopHTTP
package import GatewayCore
import GatewayHTTP
package import Logging
import ServiceLifecycle
import UnixSignals

extension Gateway {
    /// Runs a gateway until SIGTERM or SIGINT. A SIGHUP reloads the configuration.
    ///
    /// Throws `ConfigurationProblems` if settings must be changed, for example because a port is in use. Otherwise
    /// throws the error of the service that failed. Flushes the log before it throws. Logs warnings about the
    /// configuration.
    package static func serve(
        reading input: @escaping @Sendable () -> ConfigurationInput,
        warning: (GatewayConfiguration) -> [Logger.Metadata] = { _ in [] }
    ) async throws {
        let (started, secrets) = try LoadedConfiguration.read(input())
        // From here on, a SIGHUP must not end the process at any time.
        let signals = await UnixSignalsSequence(trapping: .sighup)
        let logLevel = LogLevelSetting(started.configuration.log)
        let logger = started.configuration.log.bootstrap(logLevel)
        defer { logger.flush() }
        let stop = await StopSignals(logger: logger)
        logger.info("Starting.", metadata: started.startMetadata)
        for warning in started.configuration.servingWarnings.map(started.sources.locate) {
            logger.warning("A setting may not have the intended effect.", metadata: warning.metadata)
        }
        for metadata in warning(started.configuration) {
            logger.warning("A file is not protected from other users.", metadata: metadata)
        }
        do {
            try await stop.watching {
                let gateway = try await Gateway(
                    started.configuration,
                    secrets: secrets,
                    certificates: started.certificates,
                    stop: stop,
                    logger: logger
                )
                let reloader = ConfigurationReloader(
                    started: started,
                    parts: gateway.reloadable,
                    logLevel: logLevel,
                    clock: SystemWallClock(),
                    logger: logger
                ) { () throws(ConfigurationProblems) in
                    try LoadedConfiguration.read(input()).0
                }
                let reloads = ReloadService(signals: signals, reloader: reloader) {
                    await gateway.auditSinkFile?.reopen()
                }
                let report = StartReport(gateway: gateway, certificates: started.certificates, logger: logger)
                // `stop` handles the signals.
                let others = [NamedService("reloads", reloads), NamedService("start report", report)]
                let group = gateway.group(with: others, stoppedBy: [], logger: logger)
                stop.arm(group)
                defer { logger.info("Stopped.", metadata: gateway.stopMetadata(after: stop.first)) }
                try await group.run()
            }
        } catch let error as ConfigurationProblems {
            throw ConfigurationProblems(error.problems.map(started.sources.locate))
        }
        withExtendedLifetime(signals) {}
    }

    /// Runs a gateway on free ports of this machine while a body changes its directory.
    package static func administering<Result: Sendable>(
        _ configuration: GatewayConfiguration,
        secrets: ServingSecrets,
        _ body: @Sendable (Administration) async throws -> Result
    ) async throws -> Result {
        var configuration = configuration
        for server in [\GatewayConfiguration.http.server, \GatewayConfiguration.admin.server] {
            configuration[keyPath: server].host = "127.0.0.1"
            configuration[keyPath: server].port = 0
        }
        configuration.http.drainGrace = .zero
        let logger = LogConfiguration(level: .error, format: .text).bootstrap()
        defer { logger.flush() }
        let gateway = try await Gateway(configuration, secrets: secrets, logger: logger)
        let group = gateway.group(stoppedBy: [], logger: logger)
        async let end: Void = group.run()
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(gateway.administration))
        } catch {
            result = .failure(error)
        }
        await group.triggerGracefulShutdown()
        try await end
        return try result.get()
    }

    /// Returns the facts that a stop logs. Without a signal, a part has failed.
    fileprivate func stopMetadata(after signal: (name: String, time: Uptime)?) -> Logger.Metadata {
        let cutOff = self.reloadable.dataServer.requestsCutOff + self.reloadable.adminServer.requestsCutOff
        let records = self.audit.left
        var metadata: Logger.Metadata = [
            "requests_cut_off": .stringConvertible(cutOff),
            "audit_records_in_spool": .stringConvertible(records.inSpool),
            "audit_records_lost": .stringConvertible(records.lost),
        ]
        if let signal {
            metadata["signal"] = "\(signal.name)"
            metadata["duration_ms"] = .stringConvertible(Int((Uptime.now - signal.time) / .milliseconds(1)))
        }
        return metadata
    }
}

extension LoadedConfiguration {
    /// Returns the facts that a start logs. The store's address holds no password.
    fileprivate var startMetadata: Logger.Metadata {
        let configuration = self.configuration
        let isFile = configuration.postgreSQL == nil
        return [
            "version": "\(GatewayVersion.current)", "configuration": "\(self.sources.file ?? "none")",
            "data_dir": "\(configuration.dataDir)", "audit_mode": "\(configuration.audit.mode.rawValue)",
            "store":
                "\(isFile ? GatewayConfiguration.sqliteScheme + configuration.databasePath : configuration.storeURL)",
        ]
    }
}

extension Gateway {
    /// Logs once what the gateway serves, when both listeners accept connections.
    fileprivate struct StartReport: Service {
        let gateway: Gateway
        let certificates: ListenerCertificates
        let logger: Logger

        func run() async throws {
            await cancelWhenGracefulShutdown {
                guard let admin = try? await self.gateway.adminListener.boundPort(),
                    let data = try? await self.gateway.dataListener.boundPort()
                else { return }
                let directory = self.gateway.reloadable.directory.snapshot
                var metadata: Logger.Metadata = [
                    "data_listener": "\(self.gateway.dataListener.url(self.certificates.data, data))",
                    "admin_listener": "\(self.gateway.adminListener.url(self.certificates.admin, admin))",
                    "tenants": .stringConvertible(directory.tenants.count),
                    "keys": .stringConvertible(directory.principals.values.count { $0.key.revokedAt == nil }),
                ]
                if let replica = self.gateway.replica { metadata["replica"] = "\(replica.text)" }
                self.logger.info("Serving.", metadata: metadata)
            }
            try? await gracefulShutdown()
        }
    }
}
