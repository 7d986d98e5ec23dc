import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("The audit's second sink")
    struct AuditSinkTests {
        private static func environment(_ directory: PrivateDirectory, sink: String) -> [String: String] {
            var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
            environment["GATEWAY_AUDIT_SINK"] = sink
            environment["GATEWAY_AUDIT_CHECKPOINT_INTERVAL_MS"] = "100"
            return environment
        }

        private func verify(_ environment: [String: String], _ arguments: String...) async throws -> Program.Outcome {
            try await Program.gateway(["audit", "verify"] + arguments, environment: environment)
        }

        /// Returns when a sink's file has begun.
        private func waitForCheckpoint(in sink: String) async throws {
            try await wait {
                (try? String(contentsOfFile: sink, encoding: .utf8))?.contains(#"{"type":"checkpoint""#) == true
            }
        }

        private func send(_ gateway: RunningGateway, _ key: String, count: Int) async throws {
            for _ in 0..<count {
                #expect(try await gateway.send(#"{"token": "a-device"}"#, key: key).status == 200)
            }
        }

        @Test("A file has everything after an orderly end, after a kill, and after it was moved away")
        func file() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = Self.environment(directory, sink: "file:audit.jsonl")
                    let (sink, old) = (directory.path("data/audit.jsonl"), directory.path("old.jsonl"))
                    let key = try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        try await self.send(gateway, key, count: 5)
                        try await self.waitForCheckpoint(in: sink)
                        let live = try await self.verify(environment, "--sink", sink)
                        #expect(live.end == .code(0), "\(live.output)\(live.errors)")
                        let metrics = try await Reply.to("GET", "\(gateway.adminAddress)/metrics").text
                        #expect(metrics.contains("fcmgw_audit_last_checkpoint_timestamp_seconds 1"))
                        #expect(metrics.contains("fcmgw_audit_sink_failures_total 0"))
                        try await gateway.stopInOrder()
                        return key
                    }
                    let whole = try await self.verify(environment, "--sink", sink)
                    #expect(whole.end == .code(0), "\(whole.output)\(whole.errors)")
                    // Everything that the store has, the last record included.
                    let text = try String(contentsOfFile: sink, encoding: .utf8)
                    #expect(text.contains(#""action":"audit.closed""#))
                    #expect(text.split(separator: "\n").last?.hasPrefix(#"{"type":"checkpoint""#) == true)

                    try FileManager.default.moveItem(atPath: sink, toPath: old)
                    try await RunningGateway.serving(environment) { gateway in
                        try await self.send(gateway, key, count: 20)
                        try await self.waitForCheckpoint(in: sink)
                        gateway.process.signal(SIGKILL)
                        _ = try await gateway.process.end()
                    }
                    let killed = try await self.verify(environment, "--sink", old, "--sink", sink)
                    #expect(killed.end == .code(2), "\(killed.output)\(killed.errors)")
                    try await RunningGateway.serving(environment) { try await $0.stopInOrder() }
                    let both = try await self.verify(environment, "--sink", old, "--sink", sink)
                    #expect(both.end == .code(0), "\(both.output)\(both.errors)")
                    // In the wrong order, they are no sink.
                    #expect(try await self.verify(environment, "--sink", sink, "--sink", old).end == .code(1))
                    let printed = try await Program.gateway(["audit", "public-key"], environment: environment)
                    let arguments = ["--sink-only", "--sink", old, "--sink", sink, "--public-key", printed.output]
                    let alone = try await Program.gateway(["audit", "verify"] + arguments)
                    #expect(alone.end == .code(0), "\(alone.output)\(alone.errors)")
                }
            }
        }

        @Test("SIGHUP has a file that was moved away followed by another")
        func rotation() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = Self.environment(directory, sink: "file:audit.jsonl")
                    let (sink, old) = (directory.path("data/audit.jsonl"), directory.path("old.jsonl"))
                    try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        try await self.send(gateway, key, count: 3)
                        try await self.waitForCheckpoint(in: sink)
                        try FileManager.default.moveItem(atPath: sink, toPath: old)
                        try await gateway.reload(expecting: 1)
                        try await self.send(gateway, key, count: 3)
                        try await gateway.stopInOrder()
                    }
                    let outcome = try await self.verify(environment, "--sink", old, "--sink", sink)
                    #expect(outcome.end == .code(0), "\(outcome.output)\(outcome.errors)")
                }
            }
        }

        @Test("Standard output can be collected and verified")
        func output() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = Self.environment(directory, sink: "stdout")
                    let text = try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        try await self.send(gateway, key, count: 3)
                        try await gateway.stopInOrder()
                        return gateway.process.output.text
                    }
                    let collected = try directory.write(text, to: "collected.jsonl")
                    let outcome = try await self.verify(environment, "--sink", collected)
                    #expect(outcome.end == .code(0), "\(outcome.output)\(outcome.errors)")
                    #expect(text.contains(#""action":"audit.closed""#))
                }
            }
        }

        @Test("A sink that can't be written stops no send, is logged and counted")
        func outage() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = Self.environment(directory, sink: "file:/dev/full")
                    try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        try await self.send(gateway, key, count: 3)
                        _ = try await gateway.process.errors.first { text -> Bool? in
                            text.contains("The audit's second sink can't be written") ? true : nil
                        }
                        try await self.send(gateway, key, count: 3)
                        try await gateway.stopInOrder()
                    }
                    #expect(try await self.verify(environment).end == .code(0))
                }
            }
        }
    }
}
