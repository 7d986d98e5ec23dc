import ArgumentParser
import Foundation
import GatewayService

/// The option of every verb that works on the configuration directly.
struct ConfigOptions: ParsableArguments {
    /// The YAML file; nil reads the environment alone.
    @Option(name: .long, help: "The YAML configuration file.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Reads the file and the environment.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: Both, not yet checked.
    func input(environment: [String: String]) -> ConfigurationInput {
        ConfigurationInput(file: self.config, environment: environment)
    }

    /// Reads and checks the configuration; prints what is wrong with it to standard error.
    ///
    /// - Parameter environment: The process's variables.
    /// - Returns: The configuration in force.
    /// - Throws: `ExitCode.failure` after the problems were printed.
    func load(environment: [String: String]) throws -> GatewayConfiguration {
        try Self.reporting { () throws(ConfigurationProblems) in
            try self.input(environment: environment).configuration()
        }
    }

    /// Prints the problems a body throws to standard error, one a line.
    ///
    /// - Throws: `ExitCode.failure` after the problems were printed.
    static func reporting<Value>(_ body: () throws(ConfigurationProblems) -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            FailureReport.write(error)
            throw ExitCode.failure
        }
    }
}
