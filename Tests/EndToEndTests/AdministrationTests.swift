import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Verbs against a running gateway")
    struct AdministrationTests {
        @Test("From a tenant to its first message, a revoked key and the audit of it all")
        func verbs() async throws {
            try await Site.with { site in
                try await self.run(site.gateway, site.emulator, site.directory)
                try await site.gateway.stopInOrder()
            }
        }

        private func run(_ gateway: RunningGateway, _ emulator: Emulator, _ directory: PrivateDirectory) async throws {
            let tokenFile = try directory.write(gateway.adminToken + "\n", to: "admin.token")
            let admin = ["GATEWAY_ADMIN_URL": gateway.adminAddress, "GATEWAY_ADMIN_TOKEN_FILE": tokenFile]

            try await Program.gateway(["tenant", "put", "plain"], environment: admin).expect(0)
            let put = ["tenant", "put", "shop", "--sender-id", "123", "--upstream", "legacy"]
            try await Program.gateway(put, environment: admin).expect(0)
            let endpoint = ["--server-key-file", "-", "--endpoint", emulator.address]
            let store = ["credential", "put", "shop", "legacy"] + endpoint
            let credential = try await Program.gateway(store, environment: admin, input: "the-shop's-server-key\n")
            credential.expect(0)
            #expect(!credential.text.contains("server-key"))

            let create = ["key", "create", "shop", "--name", "till", "--scope", "messages:send"]
            let created = try await Program.gateway(create, environment: admin).expect(0)
            let key = created.output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(key.wholeMatch(of: #/fgw_[a-z0-9]{10}_[A-Za-z0-9]{43}_[A-Za-z0-9]{6}/#) != nil)
            let keyID = String(key.split(separator: "_")[1])

            let service = ["GATEWAY_URL": gateway.address, "GATEWAY_KEY": key]
            let send = ["send", "shop", "--token", "a-device", "--title", "Hi", "--data", "n=1", "--output", "json"]
            let answer = try await Program.gateway(send, environment: service).expect(0).json
            #expect(answer["status"]?.text == "accepted")
            let call = try #require(await emulator.journal().first)
            #expect(call.headers("authorization") == ["key=the-shop's-server-key"])
            #expect(call["body"]?.text == #"{"to":"a-device","notification":{"title":"Hi"},"data":{"n":"1"}}"#)

            let dead = ["send", "shop", "--token", "ERROR_NotRegistered", "--title", "Hi"]
            let gone = try await Program.gateway(dead, environment: service).expect(1)
            #expect(gone.errors.contains("unregistered"))

            try await Program.gateway(["key", "revoke", "shop", keyID], environment: admin).expect(0)
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
                let query = ["audit", "query", "--tenant", "shop", "--output", "json"]
                let shown = try await Program.gateway(query, environment: admin).expect(0)
                let records = try shown.output.split(separator: "\n").map { try JSONValue(parsing: Data($0.utf8)) }
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
            let query = ["audit", "query", "--tenant", "shop", "--target", "a-device", "--output", "json"]
            let device = try await Program.gateway(query, environment: admin)
            #expect(device.output.split(separator: "\n").count == 1)
        }

        private func checkExitCodes(_ admin: [String: String]) async throws {
            for (arguments, code) in [
                (["tenant", "get", "none"], 1), (["tenant", "get", "Not a name"], 64), (["tenant", "get"], 64),
                (["no-such-verb"], 64),
            ] as [([String], Int32)] {
                try await Program.gateway(arguments, environment: admin).expect(code, "\(arguments)")
            }
            var wrong = admin
            wrong["GATEWAY_ADMIN_TOKEN_FILE"] = nil
            wrong["GATEWAY_ADMIN_TOKEN"] = "not-the-admin-token"
            let refused = try await Program.gateway(["tenant", "list"], environment: wrong).expect(1)
            #expect(refused.errors.contains("unauthenticated"))
            try await Program.gateway(["tenant", "delete", "shop"], environment: admin).expect(64)
            try await Program.gateway(["tenant", "delete", "shop", "--yes"], environment: admin).expect(0)
            #expect(try await Program.gateway(["tenant", "get", "shop"], environment: admin).end == .code(1))
        }
    }
}
