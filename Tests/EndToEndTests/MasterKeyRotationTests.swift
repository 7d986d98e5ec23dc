import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Changing the master key")
    struct MasterKeyRotationTests {
        private static let old = RunningGateway.masterKey(11)
        private static let new = RunningGateway.masterKey(12)

        private static func environment(
            _ directory: PrivateDirectory,
            _ key: String,
            previous: String? = nil
        ) -> [String: String] {
            directory.environment(["GATEWAY_MASTER_KEY": key, "GATEWAY_PREVIOUS_MASTER_KEY": previous])
        }

        private static func rewrap(_ environment: [String: String]) async throws -> Program.Outcome {
            try await Program.gateway(["credential", "rewrap", "--output", "json"], environment: environment)
        }

        private static func moved(_ outcome: Program.Outcome) -> Int? { outcome.json["moved"]?.int }

        private func send(_ gateway: RunningGateway, _ key: String) async throws -> Int {
            try await gateway.send(#"{"token": "a-device"}"#, key: key).status
        }

        @Test("Rewrapping while a gateway serves with both master keys keeps sends, API keys and the audit intact")
        func online() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let oldAlone = Self.environment(directory, Self.old)
                    let both = Self.environment(directory, Self.new, previous: Self.old)
                    let newAlone = Self.environment(directory, Self.new)
                    let key = try await RunningGateway.serving(oldAlone) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        let refused = try await Self.rewrap(both).expect(1)
                        #expect(refused.errors.contains("A gateway serves this store with another master key"))
                        #expect(try await self.send(gateway, key) == 200)
                        try await gateway.stopInOrder()
                        return key
                    }
                    try await RunningGateway.serving(both) { gateway in
                        #expect(gateway.process.errors.text.contains("sealed with the previous master key"))
                        #expect(try await self.send(gateway, key) == 200)
                        let outcome = try await Self.rewrap(both).expect(0)
                        #expect(Self.moved(outcome) == 4)
                        #expect(try await Self.moved(Self.rewrap(both)) == 0)
                        #expect(try await Self.moved(Self.rewrap(newAlone)) == 0)
                        // Each change makes the gateway read the directory again.
                        let tenant = try await gateway.admin("PUT", "tenants/late", #"{"display_name": "L"}"#)
                        #expect(tenant.status < 300)
                        #expect(try await self.send(gateway, key) == 200)
                        try await Program.auditVerify(newAlone).expect(0)
                        let record = try #require(await gateway.audit("&action=credential.rewrap").first)
                        #expect(record["principal"]?.text == "command")
                        #expect(record["object"]?.text?.hasPrefix("4 secrets to master key ") == true)
                        try await gateway.stopInOrder()
                    }
                    try await RunningGateway.serving(newAlone) { gateway in
                        #expect(!gateway.process.errors.text.contains("previous master key"))
                        #expect(try await self.send(gateway, key) == 200)
                        try await gateway.stopInOrder()
                    }
                    try await Program.auditVerify(newAlone).expect(0)
                    try await Program.gateway(["serve"], environment: oldAlone).expect(1)
                    // Exit code 66: verify can't open the key of the seals.
                    try await Program.auditVerify(oldAlone).expect(66)
                }
            }
        }

        @Test("A stopped gateway's secrets move to a new master key and back; wrong keys change nothing")
        func offline() async throws {
            try await Site.with(["GATEWAY_MASTER_KEY": Self.old]) { site in
                let directory = site.directory
                try await site.gateway.stopInOrder()
                let third = RunningGateway.masterKey(13)
                for (environment, words) in [
                    (Self.environment(directory, Self.new), "set GATEWAY_PREVIOUS_MASTER_KEY"),
                    (Self.environment(directory, Self.new, previous: third), "opens neither"),
                    (Self.environment(directory, Self.new, previous: Self.new), "is the same key"),
                ] {
                    let outcome = try await Self.rewrap(environment).expect(1)
                    #expect(outcome.output.isEmpty)
                    #expect(outcome.errors.contains(words), "\(outcome.errors)")
                }
                // The refused runs moved nothing.
                for (one, other) in [(Self.new, Self.old), (Self.old, Self.new), (third, Self.old)] {
                    let outcome = try await Self.rewrap(Self.environment(directory, one, previous: other)).expect(0)
                    #expect(Self.moved(outcome) == 4)
                }
                try await RunningGateway.serving(Self.environment(directory, third)) { gateway in
                    #expect(try await self.send(gateway, site.key) == 200)
                    #expect(try await gateway.audit("&action=credential.rewrap").count == 3)
                    try await gateway.stopInOrder()
                }
            }
        }
    }
}
