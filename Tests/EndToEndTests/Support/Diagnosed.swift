import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

/// The outcome of a run of `doctor`.
struct Diagnosed: Sendable {
    private let outcome: Program.Outcome

    var end: ChildProcess.End { self.outcome.end }
    var text: String { self.outcome.text }

    /// Runs `doctor`, offline by default.
    static func by(
        _ environment: [String: String],
        _ arguments: [String] = ["--offline"],
        descriptors: Int? = nil
    ) async throws -> Diagnosed {
        let all = ["doctor", "--output", "json"] + arguments
        let program = try Program.gateway()
        guard let descriptors else {
            return Diagnosed(outcome: try await Program.run(program, all, environment: environment))
        }
        let script = ["-c", #"ulimit -n \#(descriptors) && exec "$0" "$@""#, program.path]
        let shell = URL(filePath: "/bin/sh")
        return Diagnosed(outcome: try await Program.run(shell, script + all, environment: environment))
    }

    /// Expects an exit code; a failure shows the output.
    @discardableResult
    func expect(_ code: Int32, _ what: String = "", sourceLocation: SourceLocation = #_sourceLocation) -> Diagnosed {
        self.outcome.expect(code, what, sourceLocation: sourceLocation)
        return self
    }

    /// A check's findings, one per line: status, subject, observation, advice.
    func lines(_ check: Finding.Check) -> [String] {
        (self.outcome.json["findings"]?.elements ?? []).filter { $0["check"]?.text == check.rawValue }
            .map { finding in
                ["status", "subject", "seen", "advice"].compactMap { finding[$0]?.text }.joined(separator: " | ")
            }
    }

    /// True if a check has a finding of a status that contains some words.
    func has(_ status: Finding.Status, _ check: Finding.Check, _ words: String) -> Bool {
        self.lines(check).contains { $0.hasPrefix(status.rawValue) && $0.contains(words) }
    }
}
