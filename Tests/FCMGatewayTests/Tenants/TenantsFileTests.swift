import Foundation
import GatewayCore
import GatewayTestKit
import NIOCore
import Testing

@testable import FCMGateway
@testable import GatewayService

struct TenantsFileTests {
    private static func problems(_ text: String) -> [String] {
        do {
            _ = try TenantsFile(name: "t.yaml", text: text)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test("All fields of a tenant are read, with secrets from files beside the declaration")
    func whole() async throws {
        try await TemporaryDirectory.with { directory in
            let key = APIKey.generate()
            _ = try directory.file("shop.key", "AAAA:server-key\n")
            _ = try directory.file("orders.key", key.secret.revealText() + "\n")
            let path = try directory.file(
                "tenants.yaml",
                """
                tenants:
                  - tenant: shop
                    display_name: The shop
                    upstream: v1
                    project_id: shop-prod
                    sender_id: "123"
                    disabled: true
                    client_names: [Orders.Example]
                    limits:
                      device: [30/60s:10]
                    credentials:
                      legacy: {server_key_file: shop.key, endpoint: "http://127.0.0.1:8085"}
                    keys:
                      - name: orders
                        scopes: [messages:send, audit:read]
                        topic_prefixes: [news.]
                        expires_at: 2030-01-01T00:00:00Z
                        key_file: orders.key
                  - tenant: plain
                """
            )
            let tenants = try TenantsFile(path: path).tenants
            #expect(tenants.map(\.id.text) == ["shop", "plain"])
            #expect(tenants.map(\.line) == [2, 19])
            let shop = try #require(tenants.first)
            let client = try #require(ClientName("orders.example"))
            let settings = Tenant.Draft(
                displayName: "The shop",
                upstream: .v1,
                projectID: "shop-prod",
                senderID: "123",
                isDisabled: true,
                clientNames: [client]
            )
            #expect(shop.settings == settings)
            let policy = try #require(RatePolicy(rate: 30, periodSeconds: 60, burst: 10))
            #expect(shop.limits == [.device: [policy]])
            let credential = try #require(shop.credentials.first)
            #expect((credential.kind, credential.endpoint) == (.legacy, "http://127.0.0.1:8085"))
            let body = #"{"endpoint":"http://127.0.0.1:8085","server_key":"AAAA:server-key"}"#
            #expect(String(buffer: credential.body.revealed) == body)
            let read = try #require(shop.keys.first)
            #expect(read.draft.scopes == [.readAudit, .sendMessages])
            #expect(read.imported?.id == key.id)
            #expect(read.draft.expiresAt == Timestamp(rfc3339: "2030-01-01T00:00:00Z"))
            var dumped = ""
            dump(tenants, to: &dumped)
            #expect(!dumped.contains("server-key") && !dumped.contains(key.secret.revealText()))
            let plain = try #require(tenants.last)
            #expect(plain.limits == nil && plain.credentials.isEmpty && plain.keys.isEmpty)
            #expect(plain.settings == Tenant.Draft(displayName: "plain", upstream: .v1))
        }
    }

    @Test(
        "Every mistake is reported with its file, line and key",
        arguments: [
            ("", ["t.yaml: is empty; it must hold a list under the key tenants"]),
            ("{}", ["t.yaml:1: tenants: is missing"]),
            ("tenant: []", ["t.yaml:1: tenant: is not known; did you mean tenants?"]),
            ("tenants: {a: 1}", ["t.yaml:1: tenants: expected a list, but found keys and values"]),
            ("tenants: [shop]", ["t.yaml:1: tenants[0]: expected keys and values, but found one value"]),
            (
                // Secrets in place of file names are not quoted.
                "tenants:\n  - tenant: a\n    credentials: {legacy: AAAA, v1: {service_account_file: AAAA}}\n    keys: fgw_a",
                [
                    "t.yaml:3: tenants[0].credentials.legacy: expected keys and values, but found one value",
                    "t.yaml:3: tenants[0].credentials.v1.service_account_file: must name an existing file; relative "
                        + "names begin at this file's folder",
                    "t.yaml:4: tenants[0].keys: expected a list, but found one value",
                ]
            ),
            ("tenants:\n  - display_name: x", ["t.yaml:2: tenants[0].tenant: is missing; it is the tenant's name"]),
            (
                "tenants:\n  - tenant: Shop",
                ["t.yaml:2: tenants[0].tenant: must be 1 to 63 characters of a-z 0-9 -, and not start with -"]
            ),
            (
                "tenants:\n  - tenant: a\n  - tenant: b\n  - tenant: a",
                ["t.yaml:4: tenants[2]: declares the tenant a again; the first is in line 2"]
            ),
            (
                "tenants:\n  - tenant: a\n    tenant: b",
                ["t.yaml:2: tenant: appears more than once in one place; this is the first"]
            ),
            (
                "tenants:\n  - tenant: a\n    displayname: x\n    sender_id: 12\n    disabled: on\n    upstream: V1",
                [
                    "t.yaml:3: tenants[0].displayname: is not known; did you mean display_name?",
                    "t.yaml:4: tenants[0].sender_id: expected text, but found 12; put text in quotes, write numbers in "
                        + "plain decimal",
                    "t.yaml:5: tenants[0].disabled: must be true or false",
                    "t.yaml:6: tenants[0].upstream: must be one of legacy, v1; did you mean v1?",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    sender_id: 12a",
                ["t.yaml:3: tenants[0].sender_id: must be a number, in quotes"]
            ),
            (
                "tenants:\n  - tenant: a\n    client_names: [x, X, '*.y']",
                [
                    "t.yaml:3: tenants[0].client_names[1]: is given twice",
                    "t.yaml:3: tenants[0].client_names[2]: must be a DNS name without a wildcard, or a URI",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    client_names: [\((0...16).map { "c\($0)" }.joined(separator: ", "))]",
                ["t.yaml:3: tenants[0].client_names: must have at most 16 names"]
            ),
            (
                "tenants:\n  - tenant: a\n    limits:\n      devices: []\n      topic: []\n      tenant: [0/1s:1, {rate: 1}]",
                [
                    "t.yaml:4: tenants[0].limits.devices: is not known; did you mean device?",
                    "t.yaml:5: tenants[0].limits.topic: must have 1 to 4 policies",
                    "t.yaml:6: tenants[0].limits.tenant[0]: the rate must be from 1 to 1000000000, not 0",
                    "t.yaml:6: tenants[0].limits.tenant[1]: expected text, but found keys and values",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    limits:\n      topic: [1/86400s:31]",
                ["t.yaml:4: tenants[0].limits.topic[0]: a policy must refill its burst within 30 days"]
            ),
            (
                "tenants:\n  - tenant: a\n    credentials:\n      legacy: {endpoint: ftp://x}\n      V1: {}",
                [
                    "t.yaml:4: tenants[0].credentials.legacy.server_key_file: is missing",
                    "t.yaml:5: tenants[0].credentials.V1: is not known; did you mean v1?",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    credentials:\n      legacy: {server_key_file: /nowhere/k, endpoint: 'http://x/y'}",
                [
                    "t.yaml:4: tenants[0].credentials.legacy.endpoint: must be http(s)://host[:port] without a path",
                    "t.yaml:4: tenants[0].credentials.legacy.server_key_file: must name an existing file; relative names "
                        + "begin at this file's folder",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    keys:\n      - {}\n      - {name: n, scopes: []}\n      - {name: n, scopes: [send]}",
                [
                    "t.yaml:4: tenants[0].keys[0].name: is missing",
                    "t.yaml:4: tenants[0].keys[0].scopes: is missing",
                    "t.yaml:5: tenants[0].keys[1].scopes: must name at least one scope",
                    "t.yaml:6: tenants[0].keys[2].scopes[0]: must be one of messages:send, device-groups:manage, "
                        + "topics:manage, audit:read, tokens:read, tokens:manage, batches:manage",
                    "t.yaml:6: tenants[0].keys[2].name: n is the name of an earlier key of this tenant",
                ]
            ),
            (
                "tenants:\n  - tenant: a\n    keys: [{name: n, scopes: [audit:read], expires_at: 2030-02-30, topic_prefixes: [a b]}]",
                [
                    "t.yaml:3: tenants[0].keys[0].topic_prefixes[0]: no topic can start like this",
                    "t.yaml:3: tenants[0].keys[0].expires_at: must be a time such as 2026-03-01T12:00:00Z",
                ]
            ),
        ]
    )
    func mistakes(text: String, problems: [String]) {
        #expect(Self.problems(text) == problems)
    }

    @Test("The content of secret files is checked and never shown")
    func badSecrets() async throws {
        try await TemporaryDirectory.with { directory in
            let good = APIKey.generate().secret.revealText()
            _ = try directory.file("mistyped", String(good.dropLast()) + "-")
            _ = try directory.file("good", good)
            _ = try directory.file("two-lines", "AAAA:secret\nBBBB:secret\n")
            _ = try directory.file("account", #"{"type":"service_account","private_key":"secret"}"#)
            _ = try directory.file("words", "no secret json")
            let path = try directory.file(
                "t.yaml",
                """
                tenants:
                  - tenant: a
                    credentials:
                      legacy: {server_key_file: two-lines}
                      v1: {service_account_file: account}
                    keys:
                      - {name: one, scopes: [audit:read], key_file: mistyped}
                      - {name: two, scopes: [audit:read], key_file: good}
                  - tenant: b
                    credentials: {v1: {service_account_file: words}}
                    keys: [{name: two, scopes: [audit:read], key_file: good}]
                """
            )
            let error = #expect(throws: ConfigurationProblems.self) { try TenantsFile(path: path) }
            let problems = try #require(error).problems
            #expect(problems.map(\.source) == [4, 5, 7, 10, 11].map { .file(path, line: $0) })
            let text = problems.map(\.message).joined(separator: "\n")
            #expect(text.contains("without blanks, on one line") && text.contains("mistyped"))
            #expect(text.contains("holds a key that was declared earlier"))
            #expect(!text.contains("secret") && !text.contains(good))
        }
    }
}
