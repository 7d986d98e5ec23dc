import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct CredentialRoutesTests {
    private static let path = "/admin/v1/tenants/demo/credentials/legacy"
    private static let serverKey = "AAAAserver:APA91b-key_of.the/test"

    @Test("A stored server key is never shown; answers contain only its fingerprint")
    func writeOnly() async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.admin(.get, Self.path).status == 404)
            let body = #"{"server_key":"\#(Self.serverKey)","endpoint":"https://fcm.example:8443"}"#
            let put = await gateway.admin(.put, Self.path, body: body)
            #expect(put.status == 200)
            let expected: JSON = [
                "kind": "legacy", "endpoint": "https://fcm.example:8443", "version": 1,
                "created_at": "2026-03-01T12:00:00.000Z",
            ]
            let json = try put.json
            #expect(json.without("fingerprint") == expected)
            #expect(json["fingerprint"]?.text?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
            let got = await gateway.admin(.get, Self.path)
            #expect(got.status == 200)
            #expect(try got.json == json)

            gateway.clock.advance(by: .seconds(5))
            let again = await gateway.admin(.put, Self.path, body: #"{"server_key":"another"}"#)
            let newer = try again.json
            #expect(
                newer.without("fingerprint") == [
                    "kind": "legacy", "version": 2, "created_at": "2026-03-01T12:00:05.000Z",
                ]
            )
            #expect(newer["fingerprint"] != json["fingerprint"])

            try await gateway.settleAudit()
            let answers = [
                put, got, again, await gateway.admin(.get, "/admin/v1/tenants/demo"),
                await gateway.admin(.get, "/admin/v1/tenants"), await gateway.admin(.get, "/admin/v1/audit?limit=500"),
                await gateway.send(#"{"token":"t"}"#, key: key),
            ]
            for answer in answers {
                #expect(!answer.body.contains("APA91b"))
                #expect(!answer.body.contains("another"))
            }
        }
    }

    @Test("A missing credential can't be deleted; a deleted one can be stored again", arguments: ["legacy", "v1"])
    func delete(kind: String) async throws {
        try await TestGateway.run { gateway, key in
            let path = "/admin/v1/tenants/demo/credentials/\(kind)"
            try await gateway.admin(.delete, path).expectProblem(404, "not_found")
            guard kind == "legacy" else { return }
            _ = await gateway.admin(.put, path, body: #"{"server_key":"a"}"#)
            let gone = await gateway.admin(.delete, path)
            #expect(gone.status == 204 && gone.body.isEmpty)
            #expect(await gateway.admin(.get, path).status == 404)
            _ = await gateway.admin(.put, path, body: #"{"server_key":"b"}"#)
            #expect(await gateway.admin(.get, path).status == 200)
        }
    }

    @Test("The next send uses a new server key")
    func takesEffect() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            #expect(gateway.upstream.calls.last?.profile.legacyCredential == nil)
            let body = #"{"server_key":"\#(Self.serverKey)","endpoint":"http://127.0.0.1:8085"}"#
            _ = await gateway.admin(.put, Self.path, body: body)
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            let credential = gateway.upstream.calls.last?.profile.legacyCredential
            #expect(credential?.serverKey.revealText() == Self.serverKey)
            #expect(credential?.endpoint == "http://127.0.0.1:8085")
        }
    }

    // MARK: Service accounts

    private static let v1Path = "/admin/v1/tenants/demo/credentials/v1"

    private static func body(_ change: (inout [String: String]) -> Void = { _ in }) throws -> String {
        var members = V1Credential.sampleMembers()
        change(&members)
        let file = String(decoding: try V1Credential.sampleFile(members), as: UTF8.self)
        return #"{"service_account":\#(file),"endpoint":"https://fcm.example"}"#
    }

    @Test("A service account is shown only by its fingerprint, and the next send uses it")
    func serviceAccount() async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.admin(.get, Self.v1Path).status == 404)
            let put = await gateway.admin(.put, Self.v1Path, body: try Self.body())
            #expect(put.status == 200)
            let account = try V1Credential.sample()
            let putJSON = try put.json
            #expect(
                putJSON == [
                    "kind": "v1", "fingerprint": .string(account.fingerprint), "endpoint": "https://fcm.example",
                    "version": 1, "created_at": "2026-03-01T12:00:00.000Z",
                ]
            )
            let got = await gateway.admin(.get, Self.v1Path)
            let (shown, stored) = (try got.json, try put.json)
            #expect(shown == stored)
            #expect(await gateway.admin(.get, Self.path).status == 404)
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            let used = gateway.upstream.calls.last?.profile.v1Credential
            #expect(used?.secret.revealText() == account.secret.revealText())
            #expect(gateway.upstream.calls.last?.profile.v1ProjectID == "acme-push")

            try await gateway.settleAudit()
            let audit = await gateway.admin(.get, "/admin/v1/audit?limit=500")
            #expect(audit.body.contains("v1 version 1 \(account.fingerprint)"))
            for answer in [put, got, audit] {
                #expect(!answer.body.contains("PRIVATE"))
            }
        }
    }

    @Test(
        "An endpoint without TLS is refused unless it is a loopback address",
        arguments: [
            ("http://fcm.example", 422), ("http://10.0.0.7:8085", 422), ("http://127.0.0.1.example", 422),
            ("http://localhost:8085", 200), ("http://[::1]:8085", 200), ("https://fcm.example", 200),
        ]
    )
    func plainEndpoint(endpoint: String, status: Int) async throws {
        try await TestGateway.run { gateway, _ in
            let legacy = #"{"server_key":"\#(Self.serverKey)","endpoint":"\#(endpoint)"}"#
            let v1 = try Self.body().replacing("https://fcm.example", with: endpoint)
            for (path, body) in [(Self.path, legacy), (Self.v1Path, v1)] {
                let answer = await gateway.admin(.put, path, body: body)
                #expect(answer.status == status)
                guard status == 422 else { continue }
                #expect(try answer.faults() == ["/endpoint: invalid_field"])
                #expect(answer.body.contains("upstream.allowPlainHTTP"))
            }
        }
    }

    @Test("A foreign token endpoint is refused, and no answer quotes the private key")
    func strangersTokenEndpoint() async throws {
        try await TestGateway.run { gateway, _ in
            let body = try Self.body { $0["token_uri"] = "https://tokens.stranger.example/token" }
            let answer = await gateway.admin(.put, Self.v1Path, body: body)
            #expect(answer.status == 422)
            let faults = try answer.faults()
            #expect(faults == ["/service_account/token_uri: invalid_field"])
            let cut = await gateway.admin(.put, Self.v1Path, body: try Self.body { $0["private_key"]?.removeLast(40) })
            #expect(try cut.faults() == ["/service_account/private_key: invalid_field"])
            let secret = try #require(V1Credential.sampleMembers()["private_key"]).dropFirst(40).prefix(20)
            #expect(!cut.body.contains(secret))
        }
    }

    @Test("A check reports on the credential in use and on every other stored credential")
    func check() async throws {
        try await TestGateway.run { gateway, _ in
            let path = "/admin/v1/tenants/demo/credentials/check"
            let none = await gateway.admin(.post, path)
            #expect(none.status == 200)
            let noneJSON = try none.json
            #expect(
                noneJSON == [
                    "checks": [["kind": "legacy", "in_use": true, "finding": "missing", "detail": "There is none"]]
                ]
            )
            #expect(await gateway.admin(.put, Self.v1Path, body: try Self.body()).status == 200)
            let both = await gateway.admin(.post, path)
            let bothJSON = try both.json
            #expect(
                bothJSON == [
                    "checks": [
                        ["kind": "legacy", "in_use": true, "finding": "missing", "detail": "There is none"],
                        [
                            "kind": "v1", "in_use": false, "finding": "key_refused", "detail": "FCM refuses it",
                            "upstream_code": "401",
                        ],
                    ]
                ]
            )
        }
    }
}
