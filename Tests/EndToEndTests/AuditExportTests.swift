import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Audit export and pseudonyms", .enabled(if: SQL.isAvailable, "sqlite3 or python3 is needed"))
    struct AuditExportTests {
        private func run(_ arguments: String...) async throws -> Program.Outcome {
            try await Program.gateway(["audit"] + arguments)
        }

        @Test("An export prints each record as a line of JSON and fails on a record that can't be read")
        func export() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                try await DevGateway.with(data) { dev in
                    for number in 1...5 {
                        #expect(try await dev.send(#"{"token": "mine-\#(number)"}"#).status == 200)
                    }
                    try await dev.gateway.stopInOrder()
                }
                let lines = try await self.run("export", "--data-dir", data).expect(0).output.split(separator: "\n")
                #expect(lines.allSatisfy { $0.hasPrefix(#"{"type":"record","writer":1,"seq":"#) })
                #expect(lines.count { $0.contains(#""tenant":"demo""#) && $0.contains("message.send") } == 5)
                #expect(lines.last?.contains(#""action":"audit.closed""#) == true)
                let verified = try await Program.auditVerify(data).expect(0)
                #expect(verified.output.contains("intact: \(lines.count) records"))

                let change = "UPDATE audit_records SET body = x'00' WHERE writer = 1 AND sequence = 3"
                try await SQL.change("\(data)/gateway.sqlite", change)
                let outcome = try await self.run("export", "--data-dir", data).expect(1)
                #expect(outcome.errors.contains("Record 3 of writer 1 can't be read"))
            }
        }

        @Test("audit pseudonym computes the audit's pseudonyms and fails once the tenant is deleted")
        func pseudonyms() async throws {
            try await DevGateway.with { dev in
                let sent = try await dev.send(#"{"token": "secret-token-1"}"#)
                let topic = try await dev.send(#"{"topic": "news"}"#)
                let tokenRecord = try await dev.gateway.auditRecord(of: sent.json)
                let topicRecord = try await dev.gateway.auditRecord(of: topic.json)
                let token = tokenRecord?["targets"]?.elements.first?.text ?? "none"
                let name = topicRecord?["targets"]?.elements.first?.text ?? "none"

                let arguments = ["audit", "pseudonym", "demo", "--token-file", "-", "--data-dir", dev.data]
                let both = "secret-token-1\nsecret-token-2\n"
                let tokens = try await Program.gateway(arguments, input: both).expect(0)
                let lines = tokens.output.split(separator: "\n").map(String.init)
                #expect(lines.count == 2 && lines.first == token && lines.last != token)
                for text in ["news", "/topics/news"] {
                    let topics = try await self.run("pseudonym", "demo", "--topic", text, "--data-dir", dev.data)
                    #expect(topics.output == "\(name)\n")
                }
                #expect(try await dev.gateway.admin("DELETE", "tenants/demo").status < 300)
                let gone = try await self.run("pseudonym", "demo", "--topic", "news", "--data-dir", dev.data).expect(1)
                #expect(gone.output.isEmpty)
                #expect(gone.errors.contains("can't be computed any more"))
            }
        }
    }
}
