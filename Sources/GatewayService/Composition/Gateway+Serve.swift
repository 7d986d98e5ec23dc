import Foundation
import GatewayCore
import Logging
import ServiceLifecycle
import UnixSignals

extension Gateway {
    /// Runs a gateway until SIGTERM or SIGINT; a SIGHUP reads the configuration again.
    ///
    /// - Throws: `ConfigurationProblems` before anything was started; else what a service threw, after the log was
    ///   flushed.
    package static func serve(reading input: @escaping @Sendable () -> ConfigurationInput) async throws {
        let (started, secrets) = try LoadedConfiguration.read(input())
        // From here on a SIGHUP must not end the process, whatever it is at.
        let signals = await UnixSignalsSequence(trapping: .sighup)
        let logLevel = LogLevelSetting(started.configuration.log)
        let logger = started.configuration.log.bootstrap(logLevel)
        defer { logger.flush() }
        let stop = await StartupStop(logger: logger)
        logger.debug("Starting.")
        try await stop.watching {
            let gateway = try await Gateway(
                started.configuration,
                secrets: secrets,
                certificates: started.certificates,
                tracing: try .installed(),
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
            let group = gateway.group(with: [reloads], logger: logger)
            stop.arm(group)
            try await group.run()
        }
        withExtendedLifetime(signals) {}
    }
}
