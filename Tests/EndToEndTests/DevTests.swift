import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("dev")
    struct DevTests {
        static let shell = Program.named("bash")
        static let secretFiles = ["admin.token", "demo.key", "fcm-server.key", "master.key"]

        @Test(
            "The printed command sends a message that is audited and counted, and a restart keeps all state",
            .enabled(if: Self.shell != nil && Program.named("curl") != nil, "bash and curl are needed")
        )
        func firstMessage() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let first = try await DevGateway.with(data) { dev in
                    try await self.sendPrintedCommand(dev, serverKey: directory.text("data/fcm-server.key"))
                    try await self.checkVerified(data)
                    try self.checkModes(data)
                    let state = try await self.state(dev, directory)
                    try await dev.gateway.stopInOrder()
                    #expect(dev.gateway.process.errors.text.isEmpty)
                    return state
                }
                try await self.checkVerified(data)
                try self.checkModes(data)
                try await DevGateway.with(data) { dev in
                    #expect(try await self.state(dev, directory) == first)
                    try await self.sendPrintedCommand(dev, serverKey: directory.text("data/fcm-server.key"))
                    try await self.checkVerified(data)
                    #expect(try await dev.gateway.audit("&action=message.send").count == 2)
                    try await dev.gateway.stopInOrder()
                }
                try await self.checkVerified(data)
            }
        }

        @Test("A port above 65535 is wrong usage, and help is at most 80 columns wide", arguments: ["dev", "emulator"])
        func usage(verb: String) async throws {
            let program = try Program.development()
            let refused = try await Program.run(program, [verb, "--port", "70001"]).expect(64)
            #expect(refused.errors.contains("70001"), "\(refused.text)")
            for arguments in [["--help"], [verb, "--help"]] {
                let help = try await Program.run(program, arguments).expect(0)
                for line in help.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
            }
        }

        @Test(
            "The printed command switches the tenant to HTTP v1 and keeps its display name and sender id",
            .enabled(if: Self.shell != nil, "bash is needed")
        )
        func toV1() async throws {
            try await DevGateway.with { dev in
                let before = try await dev.gateway.admin("GET", "tenants/demo").json
                #expect(try await Program.run(try #require(Self.shell), ["-c", dev.v1Command]).end == .code(0))
                let after = try await dev.gateway.admin("GET", "tenants/demo").json
                #expect(before["upstream"]?.text == "legacy")
                #expect(after["upstream"]?.text == "v1")
                for member in ["display_name", "sender_id"] {
                    #expect(before[member]?.text != nil)
                    #expect(after[member]?.text == before[member]?.text)
                }
                #expect(try await dev.send(#"{"token":"demo-device"}"#).status == 200)
                #expect(try await dev.emulator.journal().first?["path"]?.text == "/v1/projects/demo/messages:send")
                try await dev.gateway.stopInOrder()
            }
        }

        private func sendPrintedCommand(_ dev: DevGateway, serverKey: String) async throws {
            let shell = try #require(Self.shell)
            let outcome = try await Program.run(shell, ["-c", dev.command]).expect(0)
            #expect(outcome.errors.isEmpty)
            let answer = try JSON(parsing: outcome.output)
            let messageID = try #require(answer["message_id"]?.text)
            #expect(!messageID.isEmpty)
            #expect(answer["status"]?.text == "accepted")

            let journal = try await dev.emulator.journal()
            #expect(journal.count == 1)
            let call = try #require(journal.first)
            #expect(call["method"]?.text == "POST")
            #expect(call["path"]?.text == "/fcm/send")
            #expect(call.headers("authorization") == ["key=\(serverKey)"])
            #expect(call.headers("content-type") == ["application/json"])
            #expect(
                call["body"]?.text
                    == #"{"to":"demo-device","notification":{"title":"Hello","body":"from fcm-gateway"}}"#
            )
            #expect(call["decision"]?["status"]?.int == 200)
            #expect(call["decision"]?["body"]?.text?.contains("\"\(messageID)\"") == true)

            let record = try #require(await dev.gateway.auditRecord(of: answer))
            #expect(record["outcome"]?.text == "accepted")
            #expect(record["fcm_message_id"]?.text == messageID)
            let metrics = try await dev.gateway.metrics().split(separator: "\n")
            #expect(metrics.contains(#"fcmgw_messages_total{kind="token",outcome="accepted",tenant="demo"} 1"#))
            let requests = #"{method="POST",route="/v1/tenants/{tenant}/messages",status="200"} 1"#
            #expect(metrics.contains { $0 == "fcmgw_http_request_duration_seconds_count" + requests })
        }

        private func checkVerified(_ data: String) async throws {
            let outcome = try await Program.auditVerify(data).expect(0)
            #expect(outcome.errors.isEmpty)
        }

        private func checkModes(_ data: String) throws {
            let names = try FileManager.default.contentsOfDirectory(atPath: data)
            #expect(names.contains("gateway.sqlite"))
            for name in names {
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(data)/\(name)")
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            }
            let attributes = try FileManager.default.attributesOfItem(atPath: data)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }

        /// The state that a restart must not change.
        private func state(_ dev: DevGateway, _ directory: PrivateDirectory) async throws -> [String] {
            var state = try Self.secretFiles.map { try directory.text("data/\($0)") }
            state.append(dev.key)
            state.append(try await dev.gateway.admin("GET", "tenants/demo").text)
            state.append(try await dev.gateway.admin("GET", "tenants/demo/keys").text)
            return state
        }
    }
}
