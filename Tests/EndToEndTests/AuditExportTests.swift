import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Exports of the audit, and pseudonyms")
    struct AuditExportTests {
        private static let topic = "canary-topic-of-the-other"

        private func run(_ arguments: String..., input: String = "") async throws -> Program.Outcome {
            try await Program.gateway(["audit"] + arguments, input: input)
        }

        /// Runs a body with the data directory of a gateway that served two tenants.
        private func served(_ body: (PrivateDirectory, _ data: String) async throws -> Void) async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                try await DevGateway.with(data) { dev in
                    for number in 1...5 {
                        #expect(try await dev.send(#"{"token": "mine-\#(number)"}"#).status == 200)
                    }
                    let endpoint = dev.emulator.address
                    let key = try await dev.gateway.makeTenant("other", serverKey: "other-key", endpoint: endpoint)
                    let (message, id) = (#"{"topic": "\#(Self.topic)"}"#, ["X-Request-ID": "canary-request"])
                    for _ in 1...3 {
                        let reply = try await dev.gateway.send(message, tenant: "other", key: key, headers: id)
                        // The fake FCM knows no such server key; what becomes of it is recorded all the same.
                        #expect(reply.status == 502)
                    }
                    try await dev.gateway.stopInOrder()
                }
                try await body(directory, data)
            }
        }

        @Test("A tenant's export shows nothing of others, verifies anywhere, and every change of it is found")
        func export() async throws {
            try await self.served { directory, data in
                let file = directory.path("export.jsonl")
                try await self.run("export", "--tenant", "demo", "--output-file", file, "--data-dir", data).expect(0)
                let text = try String(contentsOfFile: file, encoding: .utf8)
                #expect(text.contains(#""action":"message.send""#))
                for canary in ["other", "canary", Self.topic] { #expect(!text.contains(canary), "\(canary)") }
                let lines = text.split(separator: "\n")
                #expect(lines.count { $0.contains(#""tenant":"demo""#) && $0.contains("message.send") } == 5)
                #expect(lines.contains { $0.contains(#""digests":""#) })
                #expect(lines.count > 1 && lines[1].hasPrefix(#"{"type":"checkpoint","#))

                // Without the master key, as its recipient, and with it.
                let verified = try await self.run("verify", "--export", file).expect(0)
                #expect(verified.output.contains("intact"))
                #expect(verified.errors.contains("seals on the chains' ends are not checked"))
                #expect(verified.errors.contains("signatures are not checked"))
                let sealed = try await self.run("verify", "--export", "-", "--data-dir", data, input: text).expect(0)
                #expect(!sealed.errors.contains("not checked"))

                let key = try await self.run("public-key", "--data-dir", data).output
                let signed = try await self.run("verify", "--export", file, "--public-key", key)
                #expect(signed.end == .code(0) && !signed.errors.contains("signatures"), "\(signed.output)")
                var changes: [String] = []
                for index in lines.indices.dropFirst() {
                    var changed = lines
                    changed.remove(at: index)
                    changes.append(changed.joined(separator: "\n") + "\n")
                }
                for (old, new) in [
                    (#""accepted":1"#, #""accepted":0"#), (#""accepted":1"#, #""accepted": 1"#),
                    (#""outcome":"accepted""#, #""outcome":"rejected""#),
                    (#""live":false"#, #""live":false,"note":"x""#),
                    (#""digests":""#, #""digests":"0"#), (#""seq":2"#, #""seq":3"#),
                ] {
                    let changed = text.replacing(old, with: new, maxReplacements: 1)
                    #expect(changed != text, "\(old)")
                    changes.append(changed)
                }
                changes.append(text + "{}\n")
                changes.append(String(text.dropLast(20)))
                for (number, changed) in changes.enumerated() {
                    let path = try directory.write(changed, to: "changed-\(number)")
                    let outcome = try await self.run("verify", "--export", path, "--public-key", key)
                    let isHead = !changed.hasPrefix(#"{"fcm_gateway_audit_export":2,"tenant":"demo","live":false}"#)
                    outcome.expect(isHead ? 66 : 1, "\(number)")
                }
                try await self.run("verify", "--export", directory.path("none")).expect(66)
                try await self.run("export", "--output-file", file, "--data-dir", data).expect(73)
                #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
            }
        }

        @Test("A window of time is exported as such; a tenant that never was is not exported, a deleted one is")
        func windowsAndTenants() async throws {
            try await self.served { directory, data in
                // Of a time that is to come, there is nothing to export.
                for (option, isEmpty) in [("--from", false), ("--to", true)] {
                    let window = ["export", option, "2020-01-01T00:00:00Z", "--data-dir", data]
                    let outcome = try await Program.gateway(["audit"] + window).expect(0)
                    #expect(outcome.output.contains("message.send") != isEmpty)
                    let path = try directory.write(outcome.output, to: "window\(option)")
                    try await self.run("verify", "--export", path).expect(0)
                }
                let file = directory.path("typo.jsonl")
                let typo = try await self.run("export", "--tenant", "typo", "--output-file", file, "--data-dir", data)
                #expect(typo.end == .code(66))
                #expect(typo.errors.contains("There is no tenant typo"))
                #expect(typo.output.isEmpty)
                #expect(!FileManager.default.fileExists(atPath: file))
                try await SQL.change("\(data)/gateway.sqlite", "PRAGMA foreign_keys = ON; DELETE FROM tenants")
                let deleted = try await self.run("export", "--tenant", "demo", "--data-dir", data).expect(0)
                #expect(deleted.output.contains("tenant_uid"))
            }
        }

        @Test("A store that somebody changed is not exported", .enabled(if: SQL.isAvailable))
        func changedStore() async throws {
            try await self.served { directory, data in
                let change = "UPDATE audit_records SET time = time + 1 WHERE writer = 1 AND sequence = 3"
                try await SQL.change("\(data)/gateway.sqlite", change)
                let file = directory.path("export.jsonl")
                let outcome = try await self.run("export", "--output-file", file, "--data-dir", data).expect(1)
                #expect(outcome.errors.contains("sequence 3 of writer 1"))
                #expect(!FileManager.default.fileExists(atPath: file))
            }
        }

        @Test("The calculator's pseudonyms are those of the audit, and die with their tenant")
        func pseudonyms() async throws {
            try await DevGateway.with { dev in
                let sent = try await dev.send(#"{"token": "secret-token-1"}"#)
                let topic = try await dev.send(#"{"topic": "news"}"#)
                let tokenRecord = try await dev.gateway.auditRecord(of: sent.json)
                let topicRecord = try await dev.gateway.auditRecord(of: topic.json)
                let token = tokenRecord?["targets"]?.elements?.first?.text ?? "none"
                let name = topicRecord?["targets"]?.elements?.first?.text ?? "none"

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
