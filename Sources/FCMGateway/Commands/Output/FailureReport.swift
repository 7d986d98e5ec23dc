import ArgumentParser
import Foundation
import GatewayCore
import GatewayService

/// Why a verb failed, in words for people or as a problem object for programs.
struct FailureReport {
    /// For people.
    let text: String
    /// The same with the members of problem details: `code`, `detail`, and what is known beside them.
    let problem: JSONValue

    /// What is to be said of an error; nil for one of which all was said, or that is none, such as a call for help.
    init?(_ error: any Error) {
        switch error {
        case is ExitCode, is CleanExit:
            return nil
        case let refusal as APIError:
            self.text = refusal.description
            self.problem = refusal.object
        case let problems as ConfigurationProblems:
            self.text = problems.description
            self.problem = .object([
                "code": "invalid_configuration",
                "detail": .string(problems.description),
                "errors": .array(problems.problems.map(\.object)),
            ])
        case let error as GatewayError:
            let cause = error.cause.map { ": \($0)" } ?? ""
            self.text = "fcm-gateway: \(error.message)\(cause)"
            self.problem = Self.object(error.code.rawValue, error.message + cause)
        case let failure as CommandFailure:
            self.text = failure.message
            self.problem = Self.object("command_failed", failure.message)
        case let interruption as Interruption:
            self.text = interruption.message
            self.problem = Self.object("interrupted", interruption.message)
        default:
            let code = FCMGatewayCommand.exitCode(for: error)
            guard code != .success else { return nil }
            self.text = "fcm-gateway: \(error)"
            self.problem = Self.object(
                code == .validationFailure ? "usage" : "failed",
                FCMGatewayCommand.message(for: error)
            )
        }
    }

    /// Prints why something failed to standard error, in the form that was asked for.
    static func write(_ error: any Error) {
        guard let report = Self(error) else { return }
        let isJSON = OutputFormat.isJSON(askedBy: CommandLine.arguments)
        let json = isJSON ? try? report.problem.prettyText() : nil
        CommandOutput("", remark: json ?? report.text).writeRemark()
    }

    private static func object(_ code: String, _ detail: String) -> JSONValue {
        .object(["code": .string(code), "detail": .string(detail)])
    }
}

extension APIError {
    /// The problem as the gateway sent it, with the request's id; of another answer, its status.
    fileprivate var object: JSONValue {
        var members: [String: JSONValue] = ["code": "unexpected_answer", "detail": .string(self.description)]
        if self.code != nil, case .object(let sent)? = self.problem { members = sent }
        members["status"] = .integer(self.status)
        if let requestID = self.requestID { members["request_id"] = .string(requestID) }
        if let hint = self.hint { members["hint"] = .string(hint) }
        return .object(members)
    }
}

extension ConfigurationProblem {
    /// The problem's parts by name.
    var object: JSONValue {
        var members: [String: JSONValue] = ["detail": .string(self.message)]
        switch self.place {
        case .file(let name, let line):
            members["file"] = .string(name)
            members["line"] = line.map(JSONValue.integer)
        case .variable(let name):
            members["variable"] = .string(name)
        case .unknown:
            break
        }
        members["key"] = self.key.map(JSONValue.string)
        return .object(members)
    }
}
