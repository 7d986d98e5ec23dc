import ArgumentParser
import GatewayService
import StrictJSON

/// `config`: checks and shows the configuration.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check and show the configuration.",
        subcommands: [Check.self, Show.self]
    )

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Report all problems of the configuration.",
            discussion: """
                Exits with 1 if fcm-gateway serve would refuse the file or the environment. Missing \
                secrets, and settings that are probably unintended, only cause warnings.

                Example:
                  fcm-gateway config check --config gateway.yaml
                """
        )

        @OptionGroup var options: ConfigOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            do {
                let input = self.options.input()
                let warnings = try Self.check(input).warnings.map(input.sources.locate)
                try (self.output.isJSON ? Self.object(warnings: warnings) : Self.output(warnings)).write()
            } catch let problems as ConfigurationProblems {
                if self.output.isJSON {
                    try Self.object(problems: problems.problems).write()
                } else {
                    FailureReport.write(problems)
                }
                throw ExitCode.failure
            }
        }

        /// Checks everything that `serve` checks before it starts, except the secrets.
        static func check(_ input: ConfigurationInput) throws(ConfigurationProblems) -> GatewayConfiguration {
            let configuration = try input.configuration()
            try input.checkServing(configuration)
            _ = try input.certificates(configuration)
            try input.checkAuthorities(configuration)
            return configuration
        }

        private static func object(
            problems: [ConfigurationProblem] = [],
            warnings: [ConfigurationProblem] = []
        ) -> CommandOutput {
            .json { writer in
                writer.member("valid", problems.isEmpty)
                writer.array("problems", problems) { $0.write($1) }
                writer.array("warnings", warnings) { $0.write($1) }
            }
        }

        static func output(_ warnings: [ConfigurationProblem]) -> CommandOutput {
            let remarks = warnings.map { "warning: \($0)" }
            return CommandOutput("the configuration is good", remark: remarks.joined(separator: "\n"))
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Print every key, its value and its source; secrets are masked.",
            discussion: """
                With --output json, prints an object. Its member "settings" lists key, value, source and reloadable.

                Example:
                  fcm-gateway config show --config gateway.yaml
                """
        )

        @OptionGroup var options: ConfigOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            _ = try self.options.load()
            try Self.output(self.options.input().describe(), json: self.output.isJSON).write()
        }

        private static func output(_ rows: [ConfigurationInput.Row], json: Bool) -> CommandOutput {
            guard !json else {
                return .json { writer in
                    writer.array("settings", rows) { writer, row in
                        writer.object { writer in
                            writer.member("key", row.key.path)
                            writer.member("value", row.value)
                            writer.member("source", row.source.description)
                            writer.member("reloadable", row.key.isReloadable)
                        }
                    }
                }
            }
            let cells = rows.map { row in
                let change = row.key.isReloadable ? "reload" : "start"
                return [row.key.path, row.value.printable, row.source.description, change]
            }
            return CommandOutput(TextTable(titles: ["KEY", "VALUE", "SOURCE", "CHANGES AT"], rows: cells).text)
        }
    }
}
