import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

extension EndToEnd {
    @Suite("Strict audit mode")
    struct StrictAuditTests {
        private static let settings = ["GATEWAY_AUDIT_MODE": "strict"]

        private func intents(_ data: String) async throws -> [String] {
            let environment = ["GATEWAY_DATA_DIR": data]
            let outcome = try await Program.gateway(["audit", "intents", "--output", "json"], environment: environment)
                .expect(0)
            return outcome.output.split(separator: "\n").map(String.init)
        }

        private func verify(_ data: String) async throws -> ChildProcess.End {
            try await Program.auditVerify(["GATEWAY_DATA_DIR": data, "GATEWAY_MASTER_KEY": RunningGateway.masterKey()])
                .end
        }

        @Test("After a kill between intent and outcome the intent stays listed, and a restart makes the audit clean")
        func killedBetween() async throws {
            try await Site.with(Self.settings) { site in
                let (gateway, emulator, data, key) = (site.gateway, site.emulator, site.data, site.key)
                try await emulator.add(#"{"match": {"token": "device"}, "action": {"type": "hang"}}"#)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try? await gateway.send(#"{"token": "device"}"#, key: key) }
                    try await emulator.waitForCalls(1)
                    try await gateway.kill()
                    try await group.waitForAll()
                }
                #expect(try await self.verify(data) == .code(2))
                let open = try await self.intents(data)
                #expect(open.count == 1)
                let intent = try JSON(parsing: try #require(open.first))
                #expect(intent["action"]?.text == "message.send")
                #expect(intent["outcome"]?.text == "intent")
                try await RunningGateway.serving(RunningGateway.environment(dataDirectory: data)) { again in
                    #expect(try await self.verify(data) == .code(0))
                    #expect(try await again.audit("&action=message.send&outcome=intent").count == 1)
                    try await again.stopInOrder()
                }
                #expect(try await self.intents(data) == open)
            }
        }
    }
}
