import ArgumentParser
import Foundation
import GatewayCore
import ServiceLifecycle

/// `serve`: runs the gateway until it is told to stop.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway.",
        discussion: "It does not start without GATEWAY_MASTER_KEY and GATEWAY_ADMIN_TOKEN, or their …_FILE."
    )

    @OptionGroup var options: ConfigOptions

    func run() async throws {
        let configuration = try self.options.load(environment: ProcessInfo.processInfo.environment)
        let secrets = try ConfigOptions.reporting { () throws(ConfigurationProblems) in
            try configuration.servingSecrets()
        }
        let logger = configuration.log.bootstrap()
        try await GatewayError.reporting {
            let gateway = try await Gateway(configuration, secrets: secrets, logger: logger)
            try await gateway.group(logger: logger).run()
        }
    }
}

extension GatewayError {
    /// Prints what a body throws to standard error in one line.
    ///
    /// - Throws: `ExitCode.failure` after the error was printed.
    static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as GatewayError {
            let cause = error.cause.map { ": \($0)" } ?? ""
            CommandOutput("", remark: "fcm-gateway: \(error.message)\(cause)").write()
            throw ExitCode.failure
        } catch {
            CommandOutput("", remark: "fcm-gateway: \(error)").write()
            throw ExitCode.failure
        }
    }
}
