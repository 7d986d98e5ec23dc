import ArgumentParser
import Foundation
import GatewayCore
import GatewayService

/// `fcm-gateway-dev`: a gateway to try and the fake FCM, for development and tests.
@main
struct FCMGatewayDevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fcm-gateway-dev",
        abstract: "A trial gateway and a fake FCM, for development and tests.",
        discussion: "Exit codes: 0 done, 1 failed, 64 wrong usage.",
        version: GatewayVersion.current,
        subcommands: [DevCommand.self, EmulatorCommand.self]
    )

    /// Runs the verb. It handles secrets, so the process is protected first.
    static func main() async {
        ProcessProtection.begin()
        do {
            var command = try await self.asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            let code = self.exitCode(for: error)
            guard let failure = self.report(error, code) else { self.exit(withError: error) }
            try? StandardStream.errors.write("\(failure)\n")
            self.exit(withError: code)
        }
    }

    /// The text of a failure; `nil` if ArgumentParser prints it.
    private static func report(_ error: any Error, _ code: ExitCode) -> String? {
        let gatewayError = error as? GatewayError
        let cause = gatewayError?.cause.map { ": \($0)" } ?? ""
        let text = gatewayError.map { $0.message + cause }
        guard OutputFormat.isJSON(askedBy: CommandLine.arguments), code != .success, !(error is ExitCode) else {
            return text.map { "fcm-gateway-dev: \($0)" }
        }
        let name = gatewayError?.code.rawValue ?? (code == .validationFailure ? "usage" : "failed")
        return try? OutputFormat.json(["code": name, "detail": text ?? self.message(for: error)])
    }
}

/// A TCP port; 0 lets the system choose.
struct Port: ExpressibleByArgument, CustomStringConvertible {
    let number: Int

    init(_ number: UInt16) {
        self.number = Int(number)
    }

    init?(argument: String) {
        guard let number = UInt16(argument) else { return nil }
        self.init(number)
    }

    var description: String { "\(self.number)" }
}

/// The form in which `dev` prints its addresses, and both verbs their failures.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case table
    case json

    /// True if arguments ask for JSON, even if they can't be parsed.
    static func isJSON(askedBy arguments: [String]) -> Bool {
        arguments.contains("--output=json")
            || zip(arguments, arguments.dropFirst()).contains { $0 == ("--output", "json") }
    }

    static func json(_ members: [String: String]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return String(decoding: try encoder.encode(members), as: UTF8.self)
    }
}
