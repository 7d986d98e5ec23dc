import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Verbs over TLS")
    struct ClientTLSTests {
        private static let verbs = [
            "tenant put shop --display-name Shop", "tenant set shop --sender-id 7", "tenant disable shop",
            "tenant enable shop", "tenant get shop", "tenant list", "limit set shop --device 10/1s:10",
            "limit reset shop device", "limit get shop", "key create shop --scope messages:send", "key list shop",
            "audit query", "audit tail -n 1", "health", "doctor",
        ]

        /// A gateway whose listeners ask for certificates, the variables of a client, and its certificate's files.
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
            "Each verb reaches listeners that ask for a certificate, by options and by variables",
            arguments: [true, false]
        )
        func verbs(byOptions: Bool) async throws {
            try await self.serving { environment, files in
                let options = byOptions ? files.flatMap { [$0.option, $0.path] } : []
                let variables = byOptions ? [] : files.map { ($0.variable, $0.path) }
                var environment = environment.merging(variables) { $1 }
                for verb in Self.verbs {
                    let arguments = verb.split(separator: " ").map(String.init) + options
                    let outcome = try await Program.gateway(arguments, environment: environment).expect(0, verb)
                    if verb == "doctor" { #expect(outcome.output.contains("the gateway is ready"), "\(outcome.text)") }
                    if verb.hasPrefix("key create") {
                        environment["GATEWAY_KEY"] = outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
                    }
                }
                // Without a credential the gateway refuses what came to it.
                let send = ["send", "shop", "--token", "t"] + options
                let sent = try await Program.gateway(send, environment: environment).expect(1)
                #expect(sent.errors.contains("upstream_credentials"), "\(sent.text)")
            }
        }

        @Test("What is wrong with a certificate is said in words, with the option that helps")
        func failures() async throws {
            try await self.serving { environment, files in
                let (authority, certificate, key) = (files[0].path, files[1].path, files[2].path)
                for (options, code, words) in [
                    ([], 1, "name the authority with --ca-file or GATEWAY_CA_FILE"),
                    (["--ca-file", authority], 1, "it asks for a client certificate: give --client-certificate"),
                    (["--ca-file", authority, "--client-certificate", certificate], 64, "give --client-key"),
                    (["--ca-file", key], 1, "--ca-file: \(key) holds no certificate in PEM"),
                    (["--ca-file", "/none"], 1, "--ca-file: /none cannot be read"),
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
