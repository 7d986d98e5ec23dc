import ArgumentParser
import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Verbs over TLS")
    struct ClientTLSTests {
        /// Each verb that calls a listener, with its exit code, ordered so that each has something to do.
        private static let verbs: [(String, Int32)] = [
            ("tenant put shop --display-name Shop", 0), ("tenant set shop --sender-id 7", 0),
            ("tenant disable shop", 0),
            ("tenant enable shop", 0), ("tenant get shop", 0), ("tenant list", 0), ("tenant apply -f tenants.yaml", 0),
            ("tenant diff tenants.yaml", 2), ("limit put shop --topic 5/1s:5 --yes", 0),
            ("limit set shop --device 10/1s:10", 0), ("limit reset shop device", 0), ("limit get shop", 0),
            (
                "key create shop --name app --scope messages:send --scope tokens:manage --scope batches:manage", 0
            ), ("key list shop", 0),
            ("key rotate shop app", 0), ("explain shop body.json", 0),
            ("batch create shop --token t --title T", 0), ("batch list shop", 0), ("batch show shop none", 1),
            ("batch watch shop none", 1), ("batch pause shop none", 1), ("batch resume shop none", 1),
            ("batch cancel shop none", 1), ("batch delete shop none", 1), ("batch results shop none", 1),
            // Without a credential the gateway refuses the message.
            ("send shop --file body.json", 1), ("retired-token delete shop t", 1),
            ("credential put shop legacy --server-key-file server.key --endpoint http://127.0.0.1:9", 0),
            ("credential get shop", 0), ("credential check shop", 1), ("credential delete shop legacy --yes", 0),
            ("admin-token create lee --role viewer", 0), ("admin-token list", 0), ("admin-token revoke lee", 0),
            ("audit query", 0), ("audit tail -n 1", 0), ("health", 0), ("doctor", 0), ("key revoke shop none", 1),
            ("tenant delete shop --yes", 0),
        ]

        /// The words of each verb that has the option `--ca-file`.
        private static func callingVerbs(
            of command: any ParsableCommand.Type = FCMGatewayCommand.self,
            _ words: [String] = []
        ) -> [String] {
            let below = command.configuration.subcommands.filter { $0.configuration.shouldDisplay }
            guard below.isEmpty else { return below.flatMap { Self.callingVerbs(of: $0, words + [$0._commandName]) } }
            let help = FCMGatewayCommand.helpMessage(for: command)
            return help.contains("--ca-file") ? [words.joined(separator: " ")] : []
        }

        /// Runs a body with a gateway that requires client certificates, a client's variables and its files.
        private func serving(
            _ body: ([String: String], _ files: [(option: String, variable: String, path: String)]) async throws -> Void
        ) async throws {
            try await PrivateDirectory.with { directory in
                let authority = try TestAuthority()
                let server = try authority.certify("gateway", dnsNames: ["localhost"])
                let client = try authority.certify("operator")
                let tls = try directory.tls("ADMIN", server, clients: authority)
                    .merging(directory.tls("HTTP", server, clients: authority)) { $1 }
                let environment = directory.environment(tls)
                _ = try directory.write("tenants: []\n", to: "tenants.yaml")
                _ = try directory.write(#"{"token": "t", "notification": {"title": "T"}}"#, to: "body.json")
                _ = try directory.write("a-server-key", to: "server.key")
                let files = [
                    ("--ca-file", "GATEWAY_CA_FILE", directory.path("ca.crt")),
                    (
                        "--client-certificate", "GATEWAY_CLIENT_CERTIFICATE_FILE",
                        try directory.write(client.certificate, to: "c.crt")
                    ),
                    ("--client-key", "GATEWAY_CLIENT_KEY_FILE", try directory.write(client.privateKey, to: "c.key")),
                ]
                try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                    let ports = try await RunningGateway.ports(process)
                    let own = [
                        "GATEWAY_HTTP_PORT": ports.data, "GATEWAY_ADMIN_PORT": ports.admin,
                        "GATEWAY_URL": "https://localhost:\(ports.data)",
                        "GATEWAY_ADMIN_URL": "https://localhost:\(ports.admin)",
                    ]
                    try await body(environment.merging(own) { $1 }, files)
                    process.signal(SIGTERM)
                    #expect(try await process.end() == .code(0))
                }
            }
        }

        @Test(
            "Each verb reaches listeners that require a client certificate, with options or with variables",
            arguments: [true, false]
        )
        func verbs(byOptions: Bool) async throws {
            try await self.serving { environment, files in
                let options = byOptions ? files.flatMap { [$0.option, $0.path] } : []
                let variables = byOptions ? [] : files.map { ($0.variable, $0.path) }
                var environment = environment.merging(variables) { $1 }
                let folder = URL(filePath: files[0].path).deletingLastPathComponent()
                for verb in Self.callingVerbs() {
                    #expect(Self.verbs.contains { $0.0 == verb || $0.0.hasPrefix(verb + " ") }, "\(verb) is not tried")
                }
                for (verb, code) in Self.verbs {
                    let words = verb.split(separator: " ")
                        .map { word in
                            let file = folder.appending(path: String(word)).path
                            return FileManager.default.fileExists(atPath: file) ? file : String(word)
                        }
                    let outcome = try await Program.gateway(words + options, environment: environment)
                        .expect(code, verb)
                    #expect(!outcome.text.contains("no answer from https"), "\(outcome.text)")
                    if verb == "doctor" { #expect(outcome.output.contains("the gateway is ready"), "\(outcome.text)") }
                    if verb.hasPrefix("send") { #expect(outcome.errors.contains("upstream_credentials")) }
                    if verb.hasPrefix("key create") {
                        environment["GATEWAY_KEY"] = outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
                    }
                }
            }
        }

        @Test("A TLS failure names the option or file at fault and shows no BoringSSL error")
        func failures() async throws {
            try await self.serving { environment, files in
                let (authority, certificate, key) = (files[0].path, files[1].path, files[2].path)
                let folder = URL(filePath: key).deletingLastPathComponent()
                let otherKey = folder.appending(path: "other.key").path
                try Data(TestAuthority().certify("other").privateKey.utf8).write(to: URL(filePath: otherKey))
                for (options, code, words) in [
                    ([], 1, "name the authority with --ca-file or GATEWAY_CA_FILE"),
                    (["--ca-file", authority], 1, "it asks for a client certificate: give --client-certificate"),
                    (["--ca-file", authority, "--client-certificate", certificate], 64, "give --client-key"),
                    (["--ca-file", key], 1, "--ca-file: \(key) holds no certificate in PEM"),
                    (["--ca-file", "/none"], 1, "--ca-file: /none cannot be read"),
                    (
                        ["--ca-file", authority, "--client-certificate", certificate, "--client-key", otherKey], 1,
                        "does not belong to "
                    ),
                ] as [([String], Int32, String)] {
                    let list = ["tenant", "list"] + options
                    let outcome = try await Program.gateway(list, environment: environment).expect(code, "\(options)")
                    #expect(outcome.errors.contains(words), "\(outcome.text)")
                    #expect(!outcome.errors.contains("BoringSSL"), "\(outcome.text)")
                }
                var environment = environment
                let plain = environment["GATEWAY_ADMIN_URL"]?.replacing("https:", with: "http:")
                environment["GATEWAY_ADMIN_URL"] = plain
                let refused = try await Program.gateway(["tenant", "list"], environment: environment).expect(1)
                #expect(refused.errors.contains("does the listener want https://?"), "\(refused.text)")
            }
        }
    }
}
