import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("device groups")
    struct DeviceGroupTests {
        private static let path = "/v1/tenants/shop/device-groups/user-7"

        @Test("A group lives from REST to the fake FCM, is sent to by name, and survives kill -9 amid a change")
        func life() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                    let key = try await RunningGateway.serving(environment) { gateway in
                        let key = try await self.makeTenant(gateway, emulator)
                        let made = try await self.put(#"["a","b","c"]"#, gateway, key)
                        #expect(made.status == 201, "\(made.text)")
                        let sent = try await gateway.send(#"{"device_group":"user-7"}"#, tenant: "shop", key: key)
                        #expect(sent.json["accepted"]?.wholeNumber == 3, "\(sent.text)")
                        try await self.kill(gateway, key, emulator)
                        return key
                    }
                    try await emulator.deleteFaults()
                    try await RunningGateway.serving(environment) { gateway in
                        let shown = try await self.ask("GET", gateway, key)
                        #expect(shown.text.contains(#""exact":false"#), "\(shown.text)")
                        let again = try await self.put(#"["d"]"#, gateway, key)
                        #expect(again.status == 200, "\(again.text)")
                        #expect(again.text.contains(#""exact":true"#))
                        #expect(
                            try await self.upstream(emulator)
                                == #"{"groups":[{"name":"user-7","project_id":"77","tokens":["d"]}]}"#
                        )
                        #expect(try await self.ask("DELETE", gateway, key).status == 204)
                        #expect(try await self.upstream(emulator) == #"{"groups":[]}"#)
                        try await gateway.stopInOrder()
                    }
                }
            }
        }

        /// Kills the gateway while FCM has a change of the group and does not answer.
        private func kill(_ gateway: RunningGateway, _ key: String, _ emulator: Emulator) async throws {
            try await emulator.add(#"{"match":{"path":"/fcm/notification","token":"d"},"action":{"type":"hang"}}"#)
            await withDiscardingTaskGroup { group in
                group.addTask { _ = try? await self.put(#"["c","d"]"#, gateway, key) }
                while (try? await emulator.journal(limit: 1))?.first?["fault"]?.text != "hang" { await Task.yield() }
                gateway.process.signal(SIGKILL)
            }
            #expect(await (try? gateway.process.end()) == .signal(SIGKILL))
        }

        private func makeTenant(_ gateway: RunningGateway, _ emulator: Emulator) async throws -> String {
            _ = try await gateway.makeTenant("shop", serverKey: "AAAA:key", endpoint: emulator.address)
            _ = try await gateway.admin("PUT", "tenants/shop", #"{"upstream":"legacy","sender_id":"77"}"#)
            let scopes = #"{"name":"test","scopes":["messages:send","device-groups:manage"]}"#
            let created = try await gateway.admin("POST", "tenants/shop/keys", scopes)
            return try #require(created.json["key"]?.text)
        }

        private func put(_ tokens: String, _ gateway: RunningGateway, _ key: String) async throws -> Reply {
            try await self.ask("PUT", gateway, key, #"{"tokens":\#(tokens)}"#)
        }

        private func ask(
            _ method: String,
            _ gateway: RunningGateway,
            _ key: String,
            _ body: String? = nil
        ) async throws -> Reply {
            try await Reply.to(
                method,
                gateway.address + Self.path,
                headers: ["Authorization": "Bearer \(key)", "Content-Type": "application/json"],
                body: body
            )
        }

        private func upstream(_ emulator: Emulator) async throws -> String {
            try await Reply.to("GET", "\(emulator.address)/_emulator/groups").text
        }
    }
}
