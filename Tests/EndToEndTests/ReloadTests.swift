import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("SIGHUP")
    struct ReloadTests {
        private static let gauge = "fcmgw_config_last_reload_successful"

        @Test("Ten SIGHUPs in a row don't stop the gateway and don't disturb its shutdown")
        func manySignals() async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write("log:\n  levels: {access: warning}\n", to: "gateway.yaml")
                let environment = directory.environment()
                try await RunningGateway.serving(environment, configuration: file) { gateway in
                    for _ in 1...10 { gateway.process.signal(SIGHUP) }
                    try await gateway.reload(expecting: 1)
                    #expect(try await Reply.to("GET", "\(gateway.adminAddress)/readyz").status == 200)
                    #expect(try await gateway.metric(Self.gauge) == "1")
                    gateway.process.signal(SIGTERM)
                    for _ in 1...10 { gateway.process.signal(SIGHUP) }
                    #expect(try await gateway.process.end() == .code(0))
                }
                try await Program.auditVerify(environment).expect(0)
            }
        }

        @Test("A second SIGTERM ends the drain, and the audit verifies")
        func secondSignal() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_HTTP_DRAIN_GRACE_MS": "300000"])
                try await RunningGateway.serving(environment) { gateway in
                    gateway.process.signal(SIGTERM)
                    try await wait { try await gateway.metric("fcmgw_draining") == "1" }
                    #expect(try await Reply.to("GET", "\(gateway.adminAddress)/readyz").status == 503)
                    #expect(try await Reply.to("GET", "\(gateway.address)/").headers["connection"] == "close")
                    gateway.process.signal(SIGTERM)
                    #expect(try await gateway.process.end() == .code(0))
                }
                try await Program.auditVerify(environment).expect(0)
            }
        }
    }
}
