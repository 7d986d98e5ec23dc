import Foundation
import ProcessTestKit

@testable import FCMGateway

/// What `doctor` said.
struct Diagnosed: Sendable {
    /// How it ended.
    let end: ChildProcess.End
    /// All that it wrote.
    let text: String
    private let findings: [JSONValue]

    /// Runs `doctor`, which calls nobody unless it is told to.
    ///
    /// - Parameters:
    ///   - environment: its variables.
    ///   - arguments: further arguments.
    ///   - descriptors: how many file descriptors it may have; `nil` for as many as the tests.
    /// - Returns: what it said.
    /// - Throws: what kept it from starting.
    static func by(
        _ environment: [String: String],
        _ arguments: [String] = ["--offline"],
        descriptors: Int? = nil
    ) async throws -> Diagnosed {
        let all = ["doctor", "--output", "json"] + arguments
        let program = try Program.gateway()
        let outcome: Program.Outcome
        if let descriptors {
            let script = #"ulimit -n \#(descriptors) && exec "$0" "$@""#
            let shell = URL(filePath: "/bin/sh")
            outcome = try await Program.run(shell, ["-c", script, program.path] + all, environment: environment)
        } else {
            outcome = try await Program.run(program, all, environment: environment)
        }
        let object = try? JSONValue(parsing: Data(outcome.output.utf8))
        return Diagnosed(
            end: outcome.end,
            text: outcome.output + outcome.errors,
            findings: object?["findings"]?.elements ?? []
        )
    }

    /// The findings of a check, one a line: status, subject, what was seen, advice.
    func lines(_ check: Finding.Check) -> [String] {
        self.findings.filter { $0["check"]?.text == check.rawValue }
            .map { finding in
                ["status", "subject", "seen", "advice"].compactMap { finding[$0]?.text }.joined(separator: " | ")
            }
    }

    /// Whether a check found something of a status that has these words.
    func has(_ status: Finding.Status, _ check: Finding.Check, _ words: String) -> Bool {
        self.lines(check).contains { $0.hasPrefix(status.rawValue) && $0.contains(words) }
    }
}
