import ArgumentParser
import Foundation
import GatewayCore
import Logging
import ServiceLifecycle
import UnixSignals

/// `serve`: runs the gateway until it is told to stop.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway.",
        discussion: "It does not start without GATEWAY_MASTER_KEY and GATEWAY_ADMIN_TOKEN, or their …_FILE."
    )

    @OptionGroup var options: ConfigOptions

    func run() async throws {
        let options = self.options
        let environment = ProcessInfo.processInfo.environment
        let (started, secrets) = try ConfigOptions.reporting { () throws(ConfigurationProblems) in
            try LoadedConfiguration.read(options.input(environment: environment))
        }
        // From here on a SIGHUP must not end the process, whatever it is at.
        let signals = await UnixSignalsSequence(trapping: .sighup)
        let logLevel = LogLevelSetting(started.configuration.log)
        let logger = started.configuration.log.bootstrap(logLevel)
        defer { logger.flush() }
        let stop = await EarlyStop(logger: logger)
        logger.debug("Starting.")
        try await GatewayError.reporting(after: logger) {
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
                    try LoadedConfiguration.read(options.input(environment: environment)).0
                }
                let reloads = ReloadService(signals: signals, reloader: reloader) {
                    await gateway.auditSinkFile?.reopen()
                }
                let group = gateway.group(with: [reloads], logger: logger)
                stop.arm(group)
                try await group.run()
            }
        }
        withExtendedLifetime(signals) {}
    }
}

extension GatewayError {
    /// Prints what a body throws to standard error in one line.
    ///
    /// - Parameters:
    ///   - logger: has told what led to it, and tells that first.
    ///   - body: what may go wrong.
    /// - Throws: `ExitCode.failure` after the error was printed.
    static func reporting(after logger: Logger? = nil, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            logger?.flush()
            FailureReport.write(error)
            throw ExitCode.failure
        }
    }
}
