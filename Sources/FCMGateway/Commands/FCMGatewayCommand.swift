import ArgumentParser
import FCMModel
import Foundation
import GatewayService
import Logging

/// `fcm-gateway`: the server, and the verbs that manage a server.
///
/// Every verb sets its `commandName`. The parser would find the others' by reflection, in half a millisecond each, at every
/// start.
@main
struct FCMGatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fcm-gateway",
        abstract: "A push gateway in front of Firebase Cloud Messaging.",
        discussion: """
            Verbs that manage a running gateway call its admin API at --admin-url or GATEWAY_ADMIN_URL, with the token \
            from --admin-token-file, GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE.

            With --output json, a verb prints one JSON object; lists of audit records are one object per line. A \
            failure is an object on standard error. To complete verbs and options in your shell: fcm-gateway \
            completion install

            Exit codes: 0 done; 1 refused or failed, or the answer could not be written; 64 wrong usage; 128 plus the \
            signal's number if a signal ended the verb. Verbs that also use 2 or 66 say so in their help.
            """,
        version: GatewayVersion.current,
        subcommands: [
            InitCommand.self,
            ServeCommand.self,
            HealthCommand.self,
            TenantCommand.self,
            CredentialCommand.self,
            KeyCommand.self,
            LimitCommand.self,
            SendCommand.self,
            BatchCommand.self,
            ExplainCommand.self,
            RetiredTokenCommand.self,
            AuditCommand.self,
            StoreCommand.self,
            ConfigCommand.self,
            DoctorCommand.self,
            AdminTokenCommand.self,
            CompletionCommand.self,
        ]
    )

    /// Runs the verb that the arguments name. Every verb handles secrets, so the process is protected first.
    static func main() async {
        ProcessProtection.begin()
        do {
            var command = try await self.asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let interruption as Interruption {
            FailureReport.write(interruption)
            self.exit(withError: interruption.exitCode)
        } catch  where self.exitCode(for: error) == .success {
            try? StandardStream.output.write(self.wrapped(self.fullMessage(for: error)) + "\n")
        } catch {
            if OutputFormat.isJSON(askedBy: CommandLine.arguments), FailureReport(error) != nil {
                FailureReport.write(error)
            } else {
                CommandOutput.remark(self.wrapped(self.fullMessage(for: error)) + self.hint(for: CommandLine.arguments))
            }
            self.exit(withError: self.exitCode(for: error))
        }
    }
}

extension FCMGatewayCommand {
    /// The maximum number of columns of a help text.
    static let helpWidth = 80

    /// Returns a line with the verb that was probably meant. Empty if the arguments name a verb, or if no verb is
    /// similar.
    static func hint(for arguments: [String]) -> String {
        var command: any ParsableCommand.Type = Self.self
        for word in arguments.dropFirst() {
            let verbs = command.configuration.subcommands
            let names = verbs.map { $0._commandName }
            guard let index = names.firstIndex(of: word) else {
                let hint = word.hasPrefix("-") ? "" : NearestName.hint(for: word, among: names)
                return hint.isEmpty ? "" : "\n  \(word.printable)\(hint)"
            }
            command = verbs[index]
        }
        return ""
    }

    /// Wraps the line of a help text that lists all options, which the library leaves in one piece.
    static func wrapped(_ help: String) -> String {
        help.split(separator: "\n", omittingEmptySubsequences: false)
            .map { line in
                guard line.uppercased().hasPrefix("USAGE: "), line.count > Self.helpWidth else { return String(line) }
                var lines = [""]
                for part in line.replacing(" [", with: "\n[").replacing(" <", with: "\n<").split(separator: "\n") {
                    // An option and its value, separated by a blank, stay on one line.
                    let joined = lines[lines.count - 1] + (lines[lines.count - 1].isEmpty ? "" : " ") + part
                    if joined.count <= Self.helpWidth {
                        lines[lines.count - 1] = joined
                    } else {
                        lines.append("       " + part)
                    }
                }
                return lines.joined(separator: "\n")
            }
            .joined(separator: "\n")
    }
}

/// `serve`: runs the gateway until it is stopped.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway.",
        discussion: """
            The gateway needs GATEWAY_MASTER_KEY and GATEWAY_ADMIN_TOKEN, or their …_FILE, to start.

            Example:
              fcm-gateway serve --config gateway.yaml
            """
    )

    @OptionGroup var options: ConfigOptions

    func run() async throws {
        let options = self.options
        let environment = ProcessInfo.processInfo.environment
        try await FailureReport.reporting {
            try await Gateway.serve {
                options.input(environment: environment)
            } warning: {
                FilesCheck.examine(file: options.config, environment: environment, $0).filter { $0.status != .ok }
                    .map { ["file": "\($0.subject ?? "")", "reason": "\($0.seen)", "advice": "\($0.advice ?? "")"] }
            }
        }
    }
}
