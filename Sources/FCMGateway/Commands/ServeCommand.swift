import ArgumentParser
import Foundation
import GatewayCore
import GatewayService

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
        try await GatewayError.reporting {
            try await Gateway.serve { options.input(environment: environment) }
        }
    }
}

extension GatewayError {
    /// Prints the error that a body throws to standard error, and throws `ExitCode.failure` instead.
    static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            FailureReport.write(error)
            throw ExitCode.failure
        }
    }
}
