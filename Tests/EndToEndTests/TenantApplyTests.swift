import Foundation
import GatewayCore
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("tenant apply")
    struct TenantApplyTests {
        /// Runs a body with a gateway on its own store, and the variables that let verbs call it.
        private func with(
            _ name: String,
            _ directory: PrivateDirectory,
            _ body: (RunningGateway, [String: String]) async throws -> Void
        ) async throws {
            let environment = RunningGateway.environment(dataDirectory: directory.path(name))
            try await RunningGateway.serving(environment) { gateway in
                try await body(gateway, gateway.adminEnvironment)
                try await gateway.stopInOrder()
            }
        }

        private func apply(
            _ file: String,
            _ environment: [String: String],
            _ arguments: String...
        ) async throws -> Program.Outcome {
            try await Program.gateway(["tenant", "apply", "-f", file] + arguments, environment: environment)
        }

        private static func declaration(_ emulator: Emulator, display: String = "The shop") -> String {
            """
            tenants:
              - tenant: shop
                display_name: \(display)
                upstream: legacy
                sender_id: "123"
                limits: {device: [30/60s:10]}
                credentials:
                  legacy: {server_key_file: secrets/shop.key, endpoint: "\(emulator.address)"}
                  v1: {service_account_file: secrets/account.json}
                keys:
                  - {name: shared, scopes: [messages:send], key_file: secrets/shared.key}
                  - {name: made, scopes: [audit:read, messages:send], expires_at: 2100-01-01T00:00:00Z}
              - tenant: quiet
                disabled: true
                client_names: [Quiet.Example]
            """
        }

        /// Runs a body with a fake FCM, a file that declares its tenants, and the key that the file imports.
        private func declared(
            _ body: (PrivateDirectory, Emulator, _ file: String, _ key: String) async throws -> Void
        ) async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    let secrets = directory.path("secrets")
                    try FileManager.default.createDirectory(atPath: secrets, withIntermediateDirectories: true)
                    try directory.write("the-shop's-server-key\n", to: "secrets/shop.key")
                    var account = try await emulator.makeServiceAccount(project: "shop-project")
                    account["token_uri"] = "https://oauth2.googleapis.com/token"
                    try directory.write(account.encoded, to: "secrets/account.json")
                    let generated = try await Program.gateway(["key", "generate"]).expect(0)
                    try directory.write(generated.output, to: "secrets/shared.key")
                    let key = try directory.text("secrets/shared.key")
                    let file = try directory.write(Self.declaration(emulator), to: "tenants.yaml")
                    try await body(directory, emulator, file, key)
                }
            }
        }

        @Test("A file applies as declared, a second run changes nothing, and two gateways import the same key")
        func applied() async throws {
            try await self.declared { directory, emulator, file, key in
                try await self.with("one", directory) { gateway, admin in
                    let planned = try await self.apply(file, admin, "--dry-run").expect(2)
                    #expect(planned.output.contains("+ tenant shop\n    + display_name: The shop\n"))
                    #expect(planned.output.contains("+ key shared of tenant shop\n"))
                    #expect(try await gateway.admin("GET", "tenants").json["tenants"]?.elements.isEmpty == true)

                    let differing = try await Program.gateway(["tenant", "diff", file], environment: admin).expect(2)
                    #expect(differing.output.contains("+ tenant shop\n    + display_name: The shop\n"))
                    #expect(differing.errors.contains("7 differences"), "\(differing.errors)")

                    let done = try await self.apply(file, admin).expect(0)
                    #expect(done.errors.contains("7 changes made"), "\(done.errors)")
                    let made = try #require(done.output.firstMatch(of: #/key: (fgw_\w+)/#).map { String($0.1) })
                    for one in [key, made] {
                        #expect(try await gateway.send(#"{"token": "t"}"#, tenant: "shop", key: one).status == 200)
                    }
                    let call = try #require(await emulator.journal().first)
                    #expect(call.headers("authorization") == ["key=the-shop's-server-key"])
                    let limits = try await gateway.admin("GET", "tenants/shop/limits").json
                    #expect(limits["own"] == ["device"])
                    let quiet = try await gateway.admin("GET", "tenants/quiet").json
                    #expect(quiet["disabled"] == true && quiet["client_names"] == ["quiet.example"])
                    for text in [planned.output, planned.errors, done.output, done.errors] {
                        #expect(!text.contains(key) && !text.contains("server-key") && !text.contains("PRIVATE"))
                    }

                    // The two sends are recorded a moment after their answers.
                    try await wait { try await gateway.audit("&action=message.send").count == 2 }
                    let before = try await gateway.audit().count
                    for arguments in [["--dry-run"], [], ["--dry-run", "--output", "json"]] {
                        let again = ["tenant", "apply", "-f", file] + arguments
                        let outcome = try await Program.gateway(again, environment: admin).expect(0)
                        #expect(arguments.contains("json") || outcome.errors.contains("nothing to change"))
                    }
                    let equal = try await Program.gateway(["tenant", "diff", file], environment: admin).expect(0)
                    #expect(equal.output.isEmpty && equal.errors.contains("no difference"), "\(equal.text)")
                    // No change was made, so none was recorded.
                    #expect(try await gateway.audit().count == before)

                    let create = ["key", "create", "shop", "--name", "extra", "--scope", "messages:send"]
                    try await Program.gateway(create, environment: admin).expect(0)
                    let more = try await Program.gateway(["tenant", "diff", file], environment: admin).expect(2)
                    #expect(
                        more.output.hasPrefix("- key extra (") && more.errors.contains("1 difference"),
                        "\(more.text)"
                    )
                    let json = ["tenant", "diff", file, "--output", "json"]
                    let object = try await Program.gateway(json, environment: admin).expect(2).json
                    #expect(object["equal"] == false && object["unnamed"]?.elements.count == 1)
                    let kept = try await self.apply(file, admin).expect(0)
                    #expect(kept.errors.contains("left as they are: key extra ("), "\(kept.errors)")
                }
                try await self.with("two", directory) { gateway, admin in
                    let done = try await self.apply(file, admin, "--output", "json").expect(0)
                    #expect(done.json["changes"]?.elements.count == 7)
                    #expect(done.json["keys"]?.elements.map { $0["name"]?.text } == ["made"])
                    #expect(done.json["not_made"]?.elements.isEmpty == true)
                    #expect(!done.output.contains(key))
                    #expect(try await gateway.send(#"{"token": "t"}"#, tenant: "shop", key: key).status == 200)
                }
            }
        }

        @Test("Tenants missing from the file are deleted only with --prune and --yes")
        func pruned() async throws {
            try await self.declared { directory, _, file, _ in
                try await self.with("data", directory) { gateway, admin in
                    #expect(try await self.apply(file, admin).end == .code(0))
                    let later = try directory.write(
                        """
                        tenants:
                          - tenant: shop
                            display_name: Renamed
                            upstream: legacy
                            limits: {}
                            credentials: {legacy: {server_key_file: secrets/shop.key}}
                        """,
                        to: "later.yaml"
                    )
                    // Without a terminal --prune needs --yes.
                    let unsure = try await self.apply(later, admin, "--prune").expect(64)
                    #expect(unsure.errors.contains("--prune would delete quiet"))
                    #expect(try await gateway.admin("GET", "tenants/shop").json["display_name"]?.text == "The shop")

                    #expect(try await self.apply(later, admin, "--prune", "--yes").end == .code(0))
                    #expect(try await gateway.admin("GET", "tenants/quiet").status == 404)
                    #expect(try await gateway.admin("GET", "tenants/shop").json["display_name"]?.text == "Renamed")
                }
            }
        }

        @Test("A signal between two changes loses no key", arguments: [SIGTERM, SIGINT])
        func interrupted(signal: Int32) async throws {
            try await PrivateDirectory.with { directory in
                let names = (0..<500).map { "k\($0)" }
                let keys = names.map { "      - {name: \($0), scopes: [audit:read]}\n" }.joined()
                let file = try directory.write("tenants:\n  - tenant: shop\n    keys:\n\(keys)", to: "many.yaml")
                try await self.with("data", directory) { gateway, admin in
                    let (end, output, errors) = try await ChildProcess.with(
                        Program.gateway(),
                        ["tenant", "apply", "-f", file, "--output", "json", "--progress"],
                        environment: admin
                    ) { process in
                        // Some keys are made, most are not.
                        _ = try await process.errors.first { $0.contains("changes made: ") ? true : nil }
                        process.signal(signal)
                        return (try await process.end(), process.output.text, process.errors.text)
                    }
                    #expect(end == .code(128 + signal), "\(errors)")
                    let answer = try JSON(parsing: output)
                    let told = answer["keys"]?.elements.compactMap { $0["id"]?.text } ?? []
                    let keys = try await gateway.admin("GET", "tenants/shop/keys?limit=500")
                    let made = keys.json["keys"]?.elements ?? []
                    #expect(made.compactMap { $0["id"]?.text }.sorted() == told.sorted())
                    #expect(answer["not_made"]?.elements.count == names.count - told.count)
                    #expect(told.count < names.count)
                    #expect(errors.contains(#""code" : "interrupted""#) || errors.contains(#""code":"interrupted""#))
                    // A second apply makes the rest.
                    let rest = try await self.apply(file, admin, "--output", "json").expect(0)
                    #expect(rest.json["keys"]?.elements.count == names.count - told.count)
                }
            }
        }
    }
}
