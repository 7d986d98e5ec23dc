import Foundation

/// Programs that tests run.
enum Program {
    /// What a program that ran to its end left behind.
    struct Outcome: Sendable {
        /// How it ended.
        let end: ChildProcess.End
        /// Its standard output.
        let output: String
        /// Its standard error.
        let errors: String
    }

    /// The gateway is missing from the folder of the tests.
    struct NotBuilt: Error {}

    private final class Anchor {}

    /// The gateway, which the build puts beside the tests.
    static func gateway() throws -> URL {
        let bundle = Bundle(for: Anchor.self).bundleURL
        let folders = [
            bundle, bundle.deletingLastPathComponent(),
            Bundle.main.executableURL?.deletingLastPathComponent(),
        ]
        let programs = folders.compactMap { $0?.appending(path: "fcm-gateway") }
        guard let program = programs.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
            throw NotBuilt()
        }
        return program
    }

    /// A program of the system, if it is installed.
    static func named(_ name: String) -> URL? {
        // Services are where not everybody's path leads.
        "\(ProcessInfo.processInfo.environment["PATH"] ?? ""):/usr/sbin:/sbin"
            .split(separator: ":")
            .map { URL(filePath: String($0)).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Runs a program to its end.
    static func run(
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

    /// Runs a verb of the gateway to its end.
    static func gateway(
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = ""
    ) async throws -> Outcome {
        try await self.run(self.gateway(), arguments, environment: environment, input: input)
    }

    /// Runs `audit verify` on a data directory of `dev`.
    static func auditVerify(_ dataDirectory: String) async throws -> Outcome {
        try await self.gateway(["audit", "verify", "--data-dir", dataDirectory])
    }
}
