import Foundation
import ProcessTestKit

@testable import FCMGateway
@testable import GatewayService

extension RunningGateway {
    /// The admin token of gateways that tests start by `serve`.
    static let testAdminToken = "admin-token-of-the-tests-0123456789"

    /// A master key of 32 equal bytes, in base64.
    static func masterKey(_ byte: UInt8 = 7) -> String {
        Data(repeating: byte, count: 32).base64EncodedString()
    }

    /// The variables without which `serve` does not start, and ports that the system chooses.
    static func environment(dataDirectory: String, adminToken: String = Self.testAdminToken) -> [String: String] {
        [
            "GATEWAY_DATA_DIR": dataDirectory,
            "GATEWAY_MASTER_KEY": Self.masterKey(),
            "GATEWAY_ADMIN_TOKEN": adminToken,
            "GATEWAY_HTTP_HOST": "127.0.0.1",
            "GATEWAY_HTTP_PORT": "0",
            "GATEWAY_HTTP_DRAIN_GRACE_MS": "0",
            "GATEWAY_ADMIN_PORT": "0",
            // The machine may be busy with other tests: nothing is refused or given up for being slow.
            "GATEWAY_HTTP_MAX_LAG_MS": "60000",
            "GATEWAY_HTTP_HEAD_TIMEOUT_MS": "60000",
            "GATEWAY_HTTP_BODY_TIMEOUT_MS": "600000",
            "GATEWAY_HTTP_WRITE_STALL_TIMEOUT_MS": "600000",
            "GATEWAY_HTTP_SHUTDOWN_TIMEOUT_MS": "600000",
            "GATEWAY_ADMIN_HEAD_TIMEOUT_MS": "60000",
            "GATEWAY_ADMIN_BODY_TIMEOUT_MS": "600000",
            "GATEWAY_ADMIN_WRITE_STALL_TIMEOUT_MS": "600000",
            "GATEWAY_UPSTREAM_CONNECT_TIMEOUT_MS": "60000",
            "GATEWAY_UPSTREAM_TIMEOUT_MS": "120000",
            "GATEWAY_UPSTREAM_DEADLINE_MS": "120000",
            "GATEWAY_AUDIT_COMMIT_TIMEOUT_MS": "60000",
            "GATEWAY_AUDIT_SPOOL_AFTER_MS": "60000",
        ]
    }

    /// Runs a body with a gateway that was started by `serve`.
    ///
    /// - Parameters:
    ///   - environment: its variables.
    ///   - configuration: its file.
    ///   - descriptors: how many file descriptors it may have; `nil` for as many as the tests.
    ///   - scheme: what its data listener speaks; its admin listener speaks plain HTTP.
    ///   - body: what to do with it.
    /// - Returns: what the body returns.
    /// - Throws: what the body throws.
    static func serving<Result>(
        _ environment: [String: String],
        configuration: String? = nil,
        descriptors: Int? = nil,
        scheme: String = "http",
        _ body: (RunningGateway) async throws -> Result
    ) async throws -> Result {
        var program = try Program.gateway()
        var arguments = ["serve"] + (configuration.map { ["--config", $0] } ?? [])
        if let descriptors {
            // The shell becomes the gateway.
            arguments = ["-c", #"ulimit -n \#(descriptors) && exec "$0" "$@""#, program.path] + arguments
            program = URL(filePath: "/bin/sh")
        }
        return try await ChildProcess.with(program, arguments, environment: environment) { process in
            let ports = try await process.errors.first { text in
                let lines = text.matches(of: #/"message":"Listening\.".*"listener":"(data|admin)".*"port":"(\d+)"/#)
                let ports = Dictionary(lines.map { (String($0.1), String($0.2)) }) { $1 }
                return ports.count == 2 ? ports : nil
            }
            let gateway = RunningGateway(
                process: process,
                address: "\(scheme)://127.0.0.1:\(ports["data"] ?? "")",
                adminAddress: "http://127.0.0.1:\(ports["admin"] ?? "")",
                adminToken: environment["GATEWAY_ADMIN_TOKEN"] ?? ""
            )
            try await gateway.waitUntilReady()
            return try await body(gateway)
        }
    }
}
