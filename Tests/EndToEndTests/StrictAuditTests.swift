import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

extension EndToEnd {
    @Suite("Strict recording")
    struct StrictAuditTests {
        private func run(
            commitTimeoutMilliseconds: Int = 60_000,
            _ body: (RunningGateway, Emulator, String, _ key: String) async throws -> Void
        ) async throws {
            let timeout = String(commitTimeoutMilliseconds)
            try await Site.with(["GATEWAY_AUDIT_MODE": "strict", "GATEWAY_AUDIT_COMMIT_TIMEOUT_MS": timeout]) { site in
                try await body(site.gateway, site.emulator, site.data, site.key)
            }
        }

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

        @Test("Every facade's send is recorded before and after, and both are in the store when it is answered")
        func everyFacade() async throws {
            try await self.run { gateway, emulator, data, key in
                #expect(try await gateway.send(#"{"token": "a"}"#, key: key).status == 200)
                let legacy = try await gateway.ask("POST", "/fcm/send", key: key, #"{"to": "b"}"#)
                #expect(legacy.status == 200, "\(legacy.text)")
                let keyed = ["Idempotency-Key": "strict-1"]
                for _ in 1...2 {
                    #expect(try await gateway.send(#"{"token": "c"}"#, key: key, headers: keyed).status == 200)
                }
                // No waiting: what was answered is there.
                try await gateway.kill()
                #expect(try await emulator.journal().count == 3)
                #expect(try await self.intents(data).isEmpty)
                var environment = RunningGateway.environment(dataDirectory: data)
                environment["GATEWAY_AUDIT_MODE"] = "strict"
                try await RunningGateway.serving(environment) { again in
                    let records = try await again.audit("&action=message.send")
                    #expect(
                        records.compactMap { $0["outcome"]?.text }.reversed()
                            == ["intent", "accepted", "intent", "accepted", "intent", "accepted"]
                    )
                    try await again.stopInOrder()
                }
            }
        }

        @Test("Killed between intent and outcome, the intent stays: verify is 2, then 0, and the intent is listed")
        func killedBetween() async throws {
            try await self.run { gateway, emulator, data, key in
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
                let intent = try JSONValue(parsing: Data(try #require(open.first).utf8))
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

        @Test("While the store can't be written nothing is sent", .enabled(if: StoreHold.isAvailable))
        func refused() async throws {
            try await self.run(commitTimeoutMilliseconds: 2_000) { gateway, emulator, data, key in
                var before = try await gateway.send(#"{"token": "before"}"#, key: key)
                while before.status == 503 { before = try await gateway.send(#"{"token": "before"}"#, key: key) }
                #expect(before.status == 200)
                try await StoreHold.on(data) {
                    for _ in 1...3 {
                        let reply = try await gateway.send(#"{"token": "refused"}"#, key: key)
                        #expect(reply.status == 503)
                        #expect(reply.code == "audit_unavailable")
                    }
                    #expect(try await emulator.journal().count == 1)
                }
                try await wait { try await gateway.send(#"{"token": "after"}"#, key: key).status == 200 }
                try await gateway.stopInOrder()
                #expect(try await self.verify(data) == .code(0))
                #expect(try await self.intents(data).isEmpty)
            }
        }
    }
}
