import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("device groups")
    struct DeviceGroupTests {
        private static let path = "/v1/tenants/demo/device-groups/user-7"

        @Test("A device group is created, sent to by name and deleted, also after kill -9 during a change")
        func life() async throws {
            try await Site.with { site in
                let (first, emulator) = (site.gateway, site.emulator)
                _ = try await first.admin("PUT", "tenants/demo", #"{"upstream":"legacy","sender_id":"77"}"#)
                let key = try await first.makeKey("demo", ["messages:send", "device-groups:manage"])
                let made = try await self.put(#"["a","b","c"]"#, first, key)
                #expect(made.status == 201, "\(made.text)")
                let sent = try await first.send(#"{"device_group":"user-7"}"#, key: key)
                #expect(sent.json["accepted"]?.int == 3, "\(sent.text)")
                try await self.kill(first, key, emulator)
                try await emulator.deleteFaults()
                try await RunningGateway.serving(site.environment) { gateway in
                    let shown = try await gateway.ask("GET", Self.path, key: key)
                    #expect(shown.text.contains(#""exact":false"#), "\(shown.text)")
                    let again = try await self.put(#"["d"]"#, gateway, key)
                    #expect(again.status == 200, "\(again.text)")
                    #expect(again.text.contains(#""exact":true"#))
                    let one = #"{"groups":[{"name":"user-7","project_id":"77","tokens":["d"]}]}"#
                    #expect(try await self.upstream(emulator) == one)
                    #expect(try await gateway.ask("DELETE", Self.path, key: key).status == 204)
                    #expect(try await self.upstream(emulator) == #"{"groups":[]}"#)
                    try await gateway.stopInOrder()
                }
            }
        }

        /// Kills the gateway while FCM holds back its answer to a change of the group.
        private func kill(_ gateway: RunningGateway, _ key: String, _ emulator: Emulator) async throws {
            try await emulator.add(#"{"match":{"path":"/fcm/notification","token":"d"},"action":{"type":"hang"}}"#)
            await withDiscardingTaskGroup { group in
                group.addTask { _ = try? await self.put(#"["c","d"]"#, gateway, key) }
                while (try? await emulator.journal(limit: 1))?.first?["fault"]?.text != "hang" { await Task.yield() }
                gateway.process.signal(SIGKILL)
            }
            #expect(await (try? gateway.process.end()) == .signal(SIGKILL))
        }

        private func put(_ tokens: String, _ gateway: RunningGateway, _ key: String) async throws -> Reply {
            try await gateway.ask("PUT", Self.path, key: key, #"{"tokens":\#(tokens)}"#)
        }

        private func upstream(_ emulator: Emulator) async throws -> String {
            try await Reply.to("GET", "\(emulator.address)/_emulator/groups").text
        }
    }
}
