package import Foundation

/// Programs that tests run.
package enum Program {
    /// What a program that ran to its end left behind.
    package struct Outcome: Sendable {
        package let end: ChildProcess.End
        package let output: String
        package let errors: String
    }

    /// A program of the system, if it is installed.
    package static func named(_ name: String) -> URL? {
        // Services are where not everybody's path leads.
        "\(ProcessInfo.processInfo.environment["PATH"] ?? ""):/usr/sbin:/sbin"
            .split(separator: ":")
            .map { URL(filePath: String($0)).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Runs a program to its end.
    package static func run(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = ""
    ) async throws -> Outcome {
        try await ChildProcess.with(program, arguments, environment: environment, input: input) { child in
            let end = try await child.end()
            return Outcome(end: end, output: child.output.text, errors: child.errors.text)
        }
    }
}
