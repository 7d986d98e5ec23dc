import ArgumentParser
import Foundation
import GatewayCore
import GatewayService

/// `config`: checks and shows the configuration.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check and show the configuration.",
        subcommands: [Check.self, Show.self]
    )

    /// `config check`.
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Say everything that is wrong with the configuration.",
            discussion: "Exits with 1 when serve would refuse the file or the environment. A missing secret only warns."
        )

        @OptionGroup var options: ConfigOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let input = self.options.input(environment: ProcessInfo.processInfo.environment)
            let isJSON = self.output.output == .json
            do {
                let configuration = try Self.check(input)
                try (isJSON ? Self.object(warnings: configuration.warnings) : Self.output(configuration)).write()
            } catch let problems as ConfigurationProblems where isJSON {
                try Self.object(problems: problems.problems).write()
                throw ExitCode.failure
            } catch let problems as ConfigurationProblems {
                FailureReport.write(problems)
                throw ExitCode.failure
            }
        }

        /// Everything that `serve` checks before it starts, but for the secrets.
        static func check(_ input: ConfigurationInput) throws(ConfigurationProblems) -> GatewayConfiguration {
            let configuration = try input.configuration()
            _ = try input.certificates(configuration)
            try input.checkAuthorities(configuration)
            return configuration
        }

        /// What was found, for programs.
        static func object(
            problems: [ConfigurationProblem] = [],
            warnings: [ConfigurationProblem] = []
        ) throws -> CommandOutput {
            let members: [String: JSONValue] = [
                "valid": .bool(problems.isEmpty),
                "problems": .array(problems.map(\.object)),
                "warnings": .array(warnings.map(\.object)),
            ]
            return CommandOutput(try JSONValue.object(members).prettyText())
        }

        /// What there is to say about a configuration without problems.
        static func output(_ configuration: GatewayConfiguration) -> CommandOutput {
            let warnings = configuration.warnings.map { "warning: \($0)" }
            return CommandOutput("the configuration is good", remark: warnings.joined(separator: "\n"))
        }
    }

    /// `config show`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print every key, its value in force and where it comes from; secrets are masked.",
            discussion: "With --output json, an object whose settings are a list of key, value, source, reloadable."
        )

        @OptionGroup var options: ConfigOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let input = self.options.input(environment: ProcessInfo.processInfo.environment)
            _ = try ConfigOptions.reporting { () throws(ConfigurationProblems) in try input.configuration() }
            try Self.output(input.describe(), json: self.output.output == .json).write()
        }

        /// The rows as a table, or as the member `settings` of a JSON object.
        static func output(_ rows: [ConfigurationInput.Row], json: Bool) throws -> CommandOutput {
            guard json else {
                let cells = rows.map {
                    [
                        $0.key.path, JSONValue.printable($0.value), $0.source.description,
                        $0.key.isReloadable ? "reload" : "start",
                    ]
                }
                return CommandOutput(TextTable(titles: ["KEY", "VALUE", "SOURCE", "CHANGES AT"], rows: cells).text)
            }
            let objects = rows.map { row in
                JSONValue.object([
                    "key": .string(row.key.path),
                    "value": .string(row.value),
                    "source": .string(row.source.description),
                    "reloadable": .bool(row.key.isReloadable),
                ])
            }
            return CommandOutput(try JSONValue.object(["settings": .array(objects)]).prettyText())
        }
    }
}
