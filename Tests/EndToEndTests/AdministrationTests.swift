import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Verbs against a running gateway")
    struct AdministrationTests {
        @Test("From a tenant to its first message, a revoked key and the audit of it all")
        func verbs() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                    try await RunningGateway.serving(environment) { gateway in
                        try await self.run(gateway, emulator, directory)
                        try await gateway.stopInOrder()
                    }
                }
            }
        }

        private func run(_ gateway: RunningGateway, _ emulator: Emulator, _ directory: PrivateDirectory) async throws {
            let tokenFile = try directory.write(gateway.adminToken + "\n", to: "admin.token")
            let admin = ["GATEWAY_ADMIN_URL": gateway.adminAddress, "GATEWAY_ADMIN_TOKEN_FILE": tokenFile]

            let plain = try await Program.gateway(["tenant", "put", "plain"], environment: admin)
            #expect(plain.end == .code(0), "\(plain.errors)")
            let put = try await Program.gateway(
                ["tenant", "put", "shop", "--display-name", "The shop", "--sender-id", "123"],
                environment: admin
            )
            #expect(put.end == .code(0), "\(put.errors)")
            let credential = try await Program.gateway(
                ["credential", "put", "shop", "legacy", "--server-key-file", "-", "--endpoint", emulator.address],
                environment: admin,
                input: "the-shop's-server-key\n"
            )
            #expect(credential.end == .code(0), "\(credential.errors)")
            #expect(!credential.output.contains("server-key") && !credential.errors.contains("server-key"))

            let created = try await Program.gateway(
                ["key", "create", "shop", "--name", "till", "--scope", "messages:send"],
                environment: admin
            )
            #expect(created.end == .code(0), "\(created.errors)")
            let key = created.output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(key.wholeMatch(of: #/fgw_[a-z0-9]{10}_[A-Za-z0-9]{43}_[A-Za-z0-9]{6}/#) != nil)
            let keyID = String(key.split(separator: "_")[1])

            let service = ["GATEWAY_URL": gateway.address, "GATEWAY_KEY": key]
            let sent = try await Program.gateway(
                ["send", "shop", "--token", "a-device", "--title", "Hi", "--data", "n=1", "--output", "json"],
                environment: service
            )
            #expect(sent.end == .code(0), "\(sent.errors)")
            let answer = try JSONValue(parsing: Data(sent.output.utf8))
            #expect(answer["status"]?.text == "accepted")
            let call = try #require(await emulator.journal().first)
            #expect(call.headers("authorization") == ["key=the-shop's-server-key"])
            #expect(call["body"]?.text == #"{"to":"a-device","notification":{"title":"Hi"},"data":{"n":"1"}}"#)

            let gone = try await Program.gateway(
                ["send", "shop", "--token", "ERROR_NotRegistered", "--title", "Hi"],
                environment: service
            )
            #expect(gone.end == .code(1))
            #expect(gone.errors.contains("unregistered"))

            let revoked = try await Program.gateway(["key", "revoke", "shop", keyID], environment: admin)
            #expect(revoked.end == .code(0), "\(revoked.errors)")
            let refused = try await Program.gateway(["send", "shop", "--token", "a-device"], environment: service)
            #expect(refused.end == .code(1))
            #expect(refused.errors.contains("unauthenticated") && refused.errors.contains("401"))
            #expect(try await gateway.send("{}", tenant: "shop", key: key).status == 401)

            try await self.checkAudit(admin, messageID: answer["id"]?.text ?? "none", keyID: keyID)
            try await self.checkExitCodes(admin)
        }

        private func checkAudit(_ admin: [String: String], messageID: String, keyID: String) async throws {
            // The last ones appear a moment after their answers.
            let records = try await eventually {
                let query = try await Program.gateway(
                    ["audit", "query", "--tenant", "shop", "--output", "json"],
                    environment: admin
                )
                #expect(query.end == .code(0), "\(query.errors)")
                let records = try JSONValue(parsing: Data(query.output.utf8))["records"]?.elements ?? []
                return records.count >= 10 ? records : nil
            }
            let actions = records.reversed().map { "\($0["action"]?.text ?? "") \($0["outcome"]?.text ?? "")" }
            #expect(
                actions == [
                    "tenant.put intent", "tenant.put done", "credential.put intent", "credential.put done",
                    "key.create intent", "key.create done", "message.send accepted", "message.send rejected",
                    "key.revoke intent", "key.revoke done",
                ]
            )
            let one = try await Program.gateway(["audit", "query", "--message", messageID], environment: admin)
            #expect(one.end == .code(0))
            #expect(one.output.contains("key:\(keyID)"))
            // The pseudonym finds both messages' devices by their tokens.
            let device = try await Program.gateway(
                ["audit", "query", "--tenant", "shop", "--target", "a-device", "--output", "json"],
                environment: admin
            )
            #expect(try JSONValue(parsing: Data(device.output.utf8))["records"]?.elements?.count == 1)
        }

        private func checkExitCodes(_ admin: [String: String]) async throws {
            #expect(try await Program.gateway(["tenant", "get", "none"], environment: admin).end == .code(1))
            #expect(try await Program.gateway(["tenant", "get", "Not a name"], environment: admin).end == .code(64))
            #expect(try await Program.gateway(["tenant", "get"], environment: admin).end == .code(64))
            #expect(try await Program.gateway(["no-such-verb"], environment: admin).end == .code(64))
            var wrong = admin
            wrong["GATEWAY_ADMIN_TOKEN_FILE"] = nil
            wrong["GATEWAY_ADMIN_TOKEN"] = "not-the-admin-token"
            let refused = try await Program.gateway(["tenant", "list"], environment: wrong)
            #expect(refused.end == .code(1))
            #expect(refused.errors.contains("unauthenticated"))
            let deleted = try await Program.gateway(["tenant", "delete", "shop"], environment: admin)
            #expect(deleted.end == .code(0), "\(deleted.errors)")
            #expect(try await Program.gateway(["tenant", "get", "shop"], environment: admin).end == .code(1))
        }
    }
}
