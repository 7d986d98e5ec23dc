import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("The audit's second sink")
    struct AuditSinkTests {
        /// Runs a body with a gateway that has a second sink, and the path of a file sink.
        private func run(_ sink: String, _ body: (Site, _ sink: String) async throws -> Void) async throws {
            let settings = ["GATEWAY_AUDIT_SINK": sink, "GATEWAY_AUDIT_CHECKPOINT_INTERVAL_MS": "100"]
            try await Site.with(settings) { try await body($0, "\($0.data)/audit.jsonl") }
        }

        private func waitForCheckpoint(in sink: String) async throws {
            try await wait {
                (try? String(contentsOfFile: sink, encoding: .utf8))?.contains(#"{"type":"checkpoint""#) == true
            }
        }

        private func send(_ gateway: RunningGateway, _ key: String, count: Int) async throws {
            for _ in 0..<count { #expect(try await gateway.send(#"{"token": "a-device"}"#, key: key).status == 200) }
        }

        @Test("A file sink verifies after an orderly stop, after a move of the file, and after a kill and restart")
        func file() async throws {
            try await self.run("file:audit.jsonl") { site, sink in
                let (gateway, environment, key) = (site.gateway, site.environment, site.key)
                let old = site.directory.path("old.jsonl")
                try await self.send(gateway, key, count: 5)
                try await self.waitForCheckpoint(in: sink)
                try await Program.auditVerify(environment, "--sink", sink).expect(0)
                let last = try await gateway.metric("fcmgw_audit_last_checkpoint_timestamp_seconds")
                #expect(last?.hasPrefix("1") == true)
                #expect(try await gateway.metric("fcmgw_audit_sink_failures_total") == "0")
                try await gateway.stopInOrder()
                try await Program.auditVerify(environment, "--sink", sink).expect(0)
                // The sink holds the store's last record.
                let text = try String(contentsOfFile: sink, encoding: .utf8)
                #expect(text.contains(#""action":"audit.closed""#))
                #expect(text.split(separator: "\n").last?.hasPrefix(#"{"type":"checkpoint""#) == true)

                try FileManager.default.moveItem(atPath: sink, toPath: old)
                try await RunningGateway.serving(environment) { gateway in
                    try await self.send(gateway, key, count: 20)
                    try await self.waitForCheckpoint(in: sink)
                    try await gateway.kill()
                }
                try await Program.auditVerify(environment, "--sink", old, "--sink", sink).expect(2)
                try await RunningGateway.serving(environment) { try await $0.stopInOrder() }
                try await Program.auditVerify(environment, "--sink", old, "--sink", sink).expect(0)
                // In the wrong order the files don't verify.
                try await Program.auditVerify(environment, "--sink", sink, "--sink", old).expect(1)
                let printed = try await Program.gateway(["audit", "public-key"], environment: environment)
                let arguments = ["--sink-only", "--sink", old, "--sink", sink, "--public-key", printed.output]
                try await Program.gateway(["audit", "verify"] + arguments).expect(0)
            }
        }

        @Test("After SIGHUP a new file continues a sink whose file was moved, and both verify together")
        func rotation() async throws {
            try await self.run("file:audit.jsonl") { site, sink in
                let old = site.directory.path("old.jsonl")
                try await self.send(site.gateway, site.key, count: 3)
                try await self.waitForCheckpoint(in: sink)
                try FileManager.default.moveItem(atPath: sink, toPath: old)
                try await site.gateway.reload(expecting: 1)
                try await self.send(site.gateway, site.key, count: 3)
                try await site.gateway.stopInOrder()
                try await Program.auditVerify(site.environment, "--sink", old, "--sink", sink).expect(0)
            }
        }

        @Test("Standard output can be collected and verified")
        func output() async throws {
            try await self.run("stdout") { site, _ in
                try await self.send(site.gateway, site.key, count: 3)
                try await site.gateway.stopInOrder()
                let text = site.gateway.process.output.text
                let collected = try site.directory.write(text, to: "collected.jsonl")
                try await Program.auditVerify(site.environment, "--sink", collected).expect(0)
                #expect(text.contains(#""action":"audit.closed""#))
            }
        }
    }
}
