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
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let data = directory.path("data")
                    var environment = RunningGateway.environment(dataDirectory: data)
                    environment["GATEWAY_AUDIT_MODE"] = "strict"
                    environment["GATEWAY_AUDIT_COMMIT_TIMEOUT_MS"] = String(commitTimeoutMilliseconds)
                    try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "key", endpoint: emulator.address)
                        try await body(gateway, emulator, data, key)
                    }
                }
            }
        }

        private func intents(_ data: String) async throws -> [String] {
            let environment = ["GATEWAY_DATA_DIR": data]
            let outcome = try await Program.gateway(["audit", "intents"], environment: environment)
            #expect(outcome.end == .code(0), "\(outcome.errors)")
            return outcome.output.split(separator: "\n").map(String.init)
        }

        private func verify(_ data: String) async throws -> ChildProcess.End {
            let environment = ["GATEWAY_DATA_DIR": data, "GATEWAY_MASTER_KEY": RunningGateway.masterKey()]
            return try await Program.gateway(["audit", "verify"], environment: environment).end
        }

        @Test("Every facade's send is recorded before and after, and both are in the store when it is answered")
        func everyFacade() async throws {
            try await self.run { gateway, emulator, data, key in
                #expect(try await gateway.send(#"{"token": "a"}"#, key: key).status == 200)
                let legacy = try await Reply.to(
                    "POST",
                    "\(gateway.address)/fcm/send",
                    headers: ["Authorization": "key=\(key)", "Content-Type": "application/json"],
                    body: #"{"to": "b"}"#
                )
                #expect(legacy.status == 200, "\(legacy.text)")
                let keyed = ["Idempotency-Key": "strict-1"]
                for _ in 1...2 {
                    #expect(try await gateway.send(#"{"token": "c"}"#, key: key, headers: keyed).status == 200)
                }
                // No waiting: what was answered is there.
                gateway.process.signal(SIGKILL)
                _ = try await gateway.process.end()
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
                    gateway.process.signal(SIGKILL)
                    _ = try await gateway.process.end()
                    try await group.waitForAll()
                }
                #expect(try await self.verify(data) == .code(2))
                let open = try await self.intents(data)
                #expect(open.count == 1)
                #expect(open.first?.contains(#""action":"message.send","outcome":"intent""#) == true)
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
