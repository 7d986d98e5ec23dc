import Foundation
import ProcessTestKit

/// A gateway started by `dev`, with its fake FCM and its demo tenant.
struct DevGateway: Sendable {
    let gateway: RunningGateway
    let emulator: Emulator
    let data: String
    /// The demo tenant's key.
    let key: String
    /// The first command that the banner offers, exactly as printed.
    let command: String
    /// The banner's command that switches the tenant to HTTP v1, exactly as printed.
    let v1Command: String

    /// Runs a body with a gateway that keeps everything in a directory of its own.
    static func with<Result>(_ body: (DevGateway) async throws -> Result) async throws -> Result {
        try await PrivateDirectory.with { try await self.with($0.path("data"), body) }
    }

    /// Runs a body with a gateway that keeps everything in a directory.
    static func with<Result>(
        _ data: String,
        _ body: (DevGateway) async throws -> Result
    ) async throws -> Result {
        let arguments = ["dev", "--data-dir", data, "--port", "0", "--admin-port", "0", "--emulator-port", "0"]
        return try await ChildProcess.with(Program.development(), arguments) { process in
            let banner = try await process.output.first { $0.contains("Stop with Ctrl-C.") ? $0 : nil }
            let ports = banner.matches(of: #/http://127\.0\.0\.1:(\d+)[,. ]/#).map { String($0.1) }
            guard ports.count >= 3, let key = banner.firstMatch(of: #/Bearer (\S+)'/#),
                let command = banner.firstMatch(of: #/Send a first message:\n\n((?:.+\n)+)/#),
                let v1Command = banner.firstMatch(of: #/Send by HTTP v1 instead:\n\n((?:.+\n)+)/#)
            else { throw ProcessOutput.Missing(written: banner) }
            let gateway = RunningGateway(
                process: process,
                address: "http://127.0.0.1:\(ports[0])",
                adminAddress: "http://127.0.0.1:\(ports[1])",
                adminToken: try String(contentsOfFile: "\(data)/admin.token", encoding: .utf8)
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            )
            try await gateway.waitUntilReady()
            return try await body(
                DevGateway(
                    gateway: gateway,
                    emulator: Emulator(address: "http://127.0.0.1:\(ports[2])"),
                    data: data,
                    key: String(key.1),
                    command: String(command.1),
                    v1Command: String(v1Command.1)
                )
            )
        }
    }

    /// The variables that let verbs call both listeners.
    var environment: [String: String] {
        self.gateway.adminEnvironment.merging(["GATEWAY_URL": self.gateway.address, "GATEWAY_KEY": self.key]) { $1 }
    }

    func send(_ body: String, headers: [String: String] = [:]) async throws -> Reply {
        try await self.gateway.send(body, key: self.key, headers: headers)
    }
}
