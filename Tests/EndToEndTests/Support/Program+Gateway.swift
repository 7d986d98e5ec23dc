import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension Program {
    /// The gateway is missing from the folder of the tests.
    struct NotBuilt: Error {}

    private final class Anchor {}

    /// The gateway, which the build puts beside the tests.
    static func gateway() throws -> URL { try self.built("fcm-gateway") }

    /// The program of `dev` and `emulator`.
    static func development() throws -> URL { try self.built("fcm-gateway-dev") }

    private static func built(_ name: String) throws -> URL {
        let bundle = Bundle(for: Anchor.self).bundleURL
        let folders = [
            bundle, bundle.deletingLastPathComponent(), Bundle.main.executableURL?.deletingLastPathComponent(),
        ]
        let programs = folders.compactMap { $0?.appending(path: name) }
        guard let program = programs.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
            throw NotBuilt()
        }
        return program
    }

    /// Runs a verb of the gateway to its end.
    static func gateway(
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = ""
    ) async throws -> Outcome {
        try await self.run(self.gateway(), arguments, environment: environment, input: input)
    }

    /// Runs `audit verify` with the variables of a gateway.
    static func auditVerify(_ environment: [String: String], _ arguments: String...) async throws -> Outcome {
        try await self.gateway(["audit", "verify"] + arguments, environment: environment)
    }

    /// Runs `audit verify` on a data directory of `dev`.
    static func auditVerify(_ dataDirectory: String) async throws -> Outcome {
        try await self.gateway(["audit", "verify", "--data-dir", dataDirectory])
    }
}

extension Program.Outcome {
    var text: String { self.output + self.errors }

    /// Standard output as JSON; `null` if it isn't JSON.
    var json: JSON { (try? JSON(parsing: self.output)) ?? .null }

    /// Expects an exit code; a failure shows the output.
    @discardableResult
    func expect(
        _ code: Int32,
        _ what: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Program.Outcome {
        #expect(self.end == .code(code), "\(what): \(self.text)", sourceLocation: sourceLocation)
        return self
    }
}
