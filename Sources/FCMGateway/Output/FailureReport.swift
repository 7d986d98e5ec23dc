import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// A verb's failure, printed to standard error with exit code 1. The message never holds a secret.
struct CommandFailure: Error, Sendable, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}

extension CommandFailure: LocalizedError, CustomStringConvertible {
    var description: String { self.message }

    var errorDescription: String? { self.message }
}

/// A verb's failure, in words for people or as a problem object for programs.
struct FailureReport {
    let text: String
    /// The failure as problem details: `code`, `detail`, and further members.
    let problem: ByteBuffer

    /// Creates a report. Returns `nil` for an error that was already reported, and for a request for help.
    init?(_ error: any Error) {
        switch error {
        case is ExitCode, is CleanExit:
            return nil
        case let refusal as APIError:
            self.text = refusal.description
            self.problem = refusal.object
        case let problems as ConfigurationProblems:
            self.text = problems.description
            self.problem = JSONWriter.object { writer in
                writer.member("code", "invalid_configuration")
                writer.member("detail", problems.description)
                writer.array("errors", problems.problems) { $0.write($1) }
            }
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

    /// Prints a failure to standard error, in the requested form.
    static func write(_ error: any Error) {
        guard let report = Self(error) else { return }
        let isJSON = OutputFormat.isJSON(askedBy: CommandLine.arguments)
        CommandOutput.remark(isJSON ? CommandOutput(json: report.problem).answer : report.text)
    }

    static func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            self.write(error)
            throw ExitCode.failure
        }
    }

    private static func object(_ code: String, _ detail: String) -> ByteBuffer {
        JSONWriter.object { writer in
            writer.member("code", code)
            writer.member("detail", detail)
        }
    }
}

extension APIError {
    /// The problem as the gateway sent it, with the request's id. If another server answered, the status of its answer.
    fileprivate var object: ByteBuffer {
        JSONWriter.object { writer in
            if self.code != nil, let members = self.problem?.members {
                for member in members where !["status", "request_id", "hint"].contains(member.key) {
                    writer.key(member.key)
                    writer.value(member.value)
                }
            } else {
                writer.member("code", "unexpected_answer")
                writer.member("detail", self.description)
            }
            writer.member("status", self.status)
            writer.member("request_id", ifPresent: self.requestID ?? self.problem?.text("request_id"))
            writer.member("hint", ifPresent: self.hint)
        }
    }
}

extension JSONWriter {
    mutating func write(_ problem: ConfigurationProblem) {
        self.object { writer in
            writer.member("detail", problem.message)
            switch problem.source {
            case .file(let name, let line):
                writer.member("file", name)
                if let line { writer.member("line", line) }
            case .variable(let name):
                writer.member("variable", name)
            case .builtIn:
                break
            }
            writer.member("key", ifPresent: problem.key)
        }
    }
}
