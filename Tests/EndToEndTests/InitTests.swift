import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("init")
    struct InitTests {
        /// Runs `init --user root` for a directory's folder `made`.
        private func make(_ directory: PrivateDirectory, _ options: [String], input: String = "") async throws
            -> Program.Outcome
        {
            let own = ["init", "--config-dir", directory.path("made"), "--user", "root"]
            return try await Program.gateway(own + options, input: input)
        }

        private func contents(_ directory: PrivateDirectory) -> [String] {
            ((try? FileManager.default.subpathsOfDirectory(atPath: directory.path("made"))) ?? []).sorted()
        }

        @Test("A gateway set up by init serves TLS and sends for its tenant with the key that init made")
        func firstSend() async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    let account = try await emulator.makeServiceAccount(project: "shop")
                    let options = [
                        "--test-certificate", "localhost", "--service-account", "-", "--fcm-url", emulator.address,
                        "--output", "json",
                    ]
                    let made = try await self.make(directory, options, input: account.encoded).expect(0)
                    #expect(made.json["tenant"]?.text == "shop")
                    #expect(made.json["url"]?.text == "https://localhost:8080")
                    for (file, mode) in [
                        ("master.key", 0o400), ("admin.token", 0o400), ("keys/shop.key", 0o400),
                        ("tls/server.key", 0o400), ("data", 0o700), ("data/gateway.sqlite", 0o600),
                    ] {
                        let attributes = try FileManager.default.attributesOfItem(
                            atPath: directory.path("made/\(file)")
                        )
                        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode, "\(file)")
                    }
                    var environment = RunningGateway.environment(dataDirectory: "")
                    for variable in ["DATA_DIR", "MASTER_KEY", "ADMIN_TOKEN"] {
                        environment["GATEWAY_\(variable)"] = nil
                    }
                    environment["GATEWAY_MASTER_KEY_FILE"] = made.json["master_key_file"]?.text
                    environment["GATEWAY_ADMIN_TOKEN_FILE"] = made.json["admin_token_file"]?.text
                    let configuration = try #require(made.json["config"]?.text)
                    try await RunningGateway.serving(environment, configuration: configuration) { gateway in
                        environment["GATEWAY_KEY_FILE"] = made.json["key_file"]?.text
                        environment["GATEWAY_CA_FILE"] = made.json["certificate_file"]?.text
                        environment["GATEWAY_URL"] = "https://localhost:\(gateway.port)"
                        environment["GATEWAY_ADMIN_URL"] = gateway.adminAddress
                        let check = try await Program.gateway(
                            ["credential", "check", "shop"],
                            environment: environment
                        )
                        check.expect(0)
                        let send = ["send", "shop", "--token", "device", "--title", "Hello"]
                        try await Program.gateway(send, environment: environment).expect(0)
                        let last = try await emulator.journal(limit: 1).first
                        #expect(last?["path"]?.text == "/v1/projects/shop/messages:send")
                        try await gateway.stopInOrder()
                    }
                    let verified = try await Program.gateway(
                        ["audit", "verify", "--config", configuration],
                        environment: ["GATEWAY_MASTER_KEY_FILE": directory.path("made/master.key")]
                    )
                    #expect(verified.expect(0).output.contains("intact"))
                }
            }
        }

        @Test("The output of init lists the files, their backup and the next commands")
        func report() async throws {
            try await PrivateDirectory.with { directory in
                let output = try await self.make(directory, []).expect(0).output
                for part in [
                    "Made:", "Back up", "Next:", "tenant put shop", "credential put shop v1", "key create shop",
                ] {
                    #expect(output.contains(part), "\(part) in \(output)")
                }
                let serve = "fcm-gateway serve --config \(directory.path("made/gateway.yaml"))"
                #expect(output.contains(serve), "\(output)")
                let check = ["config", "check", "--config", directory.path("made/gateway.yaml")]
                try await Program.gateway(check).expect(0)
            }
        }

        @Test("A second init is refused and changes nothing, even if only the store exists")
        func neverOverwrites() async throws {
            try await PrivateDirectory.with { directory in
                try await self.make(directory, []).expect(0)
                let key = try directory.text("made/master.key")
                let before = self.contents(directory)
                let again = try await self.make(directory, []).expect(1)
                #expect(again.errors.contains("gateway.yaml exists already"), "\(again.text)")
                #expect(try directory.text("made/master.key") == key)
                #expect(self.contents(directory) == before)

                for name in ["gateway.yaml", "master.key", "admin.token"] {
                    try FileManager.default.removeItem(atPath: directory.path("made/\(name)"))
                }
                try directory.write("", to: "made/data/gateway.sqlite")
                let store = try await self.make(directory, []).expect(1)
                #expect(store.errors.contains("holds gateway.sqlite already"), "\(store.text)")
                #expect(self.contents(directory) == ["data", "data/gateway.sqlite"])
            }
        }

        @Test(
            "A failed init reports the reason and leaves nothing behind",
            arguments: [
                (["--service-account", "-"], "{}", "the service account can't be used: type: This must be given"),
                (["--certificate", "/nowhere", "--private-key", "/nowhere"], "", "/nowhere cannot be read"),
                (["--fcm-url", "http://fcm.example.com/path"], "", "without a path or query"),
            ]
        )
        func leavesNothing(options: [String], input: String, text: String) async throws {
            try await PrivateDirectory.with { directory in
                let outcome = try await self.make(directory, options, input: input).expect(1)
                #expect(outcome.errors.contains(text), "\(outcome.text)")
                #expect(!FileManager.default.fileExists(atPath: directory.path("made")))
            }
        }
    }
}
