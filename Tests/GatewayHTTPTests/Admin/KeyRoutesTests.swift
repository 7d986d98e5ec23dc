import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct KeyRoutesTests {
    private static let path = "/admin/v1/tenants/demo/keys"

    @Test("A new key is shown once, uncached, and works")
    func create() async throws {
        try await TestGateway.run { gateway, _ in
            let body = """
                {"name":"billing","scopes":["messages:send","audit:read"],"topic_prefixes":["bill-"],
                 "expires_at":"2026-04-01T00:00:00Z"}
                """
            let answer = await gateway.admin(.post, Self.path, body: body)
            #expect(answer.status == 201)
            #expect(answer.header("Cache-Control") == "no-store")
            #expect(answer.header("Content-Type") == "application/json")
            let json = try answer.json
            let text = try #require(json["key"]?.text)
            #expect(text.wholeMatch(of: /fgw_[a-z0-9]{10}_[A-Za-z0-9]{43}_[A-Za-z0-9]{6}/) != nil)
            #expect(json["id"]?.text == APIKey(text)?.id)
            let rest: JSON = [
                "name": "billing", "scopes": ["audit:read", "messages:send"], "topic_prefixes": ["bill-"],
                "created_at": "2026-03-01T12:00:00.000Z", "expires_at": "2026-04-01T00:00:00.000Z",
            ]
            #expect(json.without("id", "key") == rest)

            let list = await gateway.admin(.get, Self.path)
            #expect(list.status == 200)
            let listed = try list.json["keys"]?.elements.first { $0["id"] == json["id"] }
            #expect(listed?.without("id") == rest)
            let secret = try #require(text.split(separator: "_").dropFirst(2).first)
            #expect(!list.body.contains(secret))
            try await gateway.settleAudit()
            #expect(!(await gateway.admin(.get, "/admin/v1/audit?limit=500")).body.contains(secret))

            #expect(await gateway.send(#"{"topic":"bill-1"}"#, key: text).status == 200)
            #expect(await gateway.send(#"{"topic":"news"}"#, key: text).status == 403)
        }
    }

    @Test("An imported key works and is never shown; importing it again changes nothing")
    func importKey() async throws {
        try await TestGateway.run { gateway, _ in
            let key = APIKey.generate()
            let text = key.secret.revealText()
            let secret = try #require(text.split(separator: "_").dropFirst(2).first)
            let body = #"{"name":"shared","scopes":["messages:send"],"key":"\#(text)"}"#
            let answer = await gateway.admin(.post, Self.path, body: body)
            #expect(answer.status == 201)
            let json = try answer.json
            let expected: JSON = [
                "id": .string(key.id), "name": "shared", "scopes": ["messages:send"], "topic_prefixes": [],
                "created_at": "2026-03-01T12:00:00.000Z",
            ]
            #expect(json == expected)
            #expect(await gateway.send(#"{"token":"t"}"#, key: text).status == 200)

            gateway.clock.advance(by: .seconds(60))
            let again = await gateway.admin(.post, Self.path, body: body)
            #expect(again.status == 200)
            #expect(try again.json == expected)
            try await gateway.settleAudit()
            let audit = await gateway.admin(.get, "/admin/v1/audit?limit=500&action=key.import")
            #expect(try audit.json["records"]?.elements.map { $0["outcome"]?.text } == ["done", "intent"])
            #expect(!audit.body.contains(secret))
        }
    }

    @Test("The import of an invalid, conflicting or revoked key is refused")
    func refusedImport() async throws {
        try await TestGateway.run { gateway, first async throws in
            func importing(_ key: String, to tenant: String = "demo", _ more: String = "") async -> Answer {
                await gateway.admin(
                    .post,
                    "/admin/v1/tenants/\(tenant)/keys",
                    body: #"{"name":"n","scopes":["messages:send"],"key":"\#(key)"\#(more)}"#
                )
            }
            var mistyped = first
            mistyped.removeLast()
            mistyped.append(first.last == "0" ? "1" : "0")
            for bad in [mistyped, "", "fgw_x", String(first.dropFirst()), first + "0"] {
                let answer = await importing(bad)
                #expect(answer.status == 422, "\(bad)")
                #expect(try answer.json["errors"]?.elements.first?["pointer"] == "/key")
                #expect(bad.isEmpty || !answer.body.contains(bad))
            }

            let key = APIKey.generate()
            let text = key.secret.revealText()
            #expect(await importing(text).status == 201)
            // Another tenant, other properties, another secret under the same id.
            #expect(await importing(text, to: "other").status == 409)
            #expect(await importing(text, #","topic_prefixes":["a"]"#).status == 409)
            #expect(await importing(text, #","expires_at":"2027-01-01T00:00:00Z""#).status == 409)
            #expect(await importing(Self.sibling(of: key)).status == 409)
            #expect(await importing(text, to: "unknown").status == 404)
            #expect(await gateway.send(#"{"token":"t"}"#, key: text).status == 200)

            #expect(await gateway.admin(.delete, "\(Self.path)/\(key.id)").status == 204)
            #expect(await importing(text).status == 409)
            #expect(await gateway.send(#"{"token":"t"}"#, key: text).status == 401)
        }
    }

    /// A well-formed key with the same id and another secret.
    private static func sibling(of key: APIKey) -> String {
        let body = Array("fgw_\(key.id)_\(String(repeating: "A", count: APIKey.secretLength))".utf8)
        var checksum: UInt32 = 0xFFFF_FFFF
        for byte in body {
            checksum ^= UInt32(byte)
            for _ in 0..<8 { checksum = checksum >> 1 ^ (checksum & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        var rest = ~checksum
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        var digits = ""
        for _ in 0..<APIKey.checksumLength {
            digits = String(alphabet[Int(rest % 62)]) + digits
            rest /= 62
        }
        return String(decoding: body, as: UTF8.self) + "_" + digits
    }

    @Test("A key whose expiry is not in the future is not created")
    func pastExpiry() async throws {
        try await TestGateway.run { gateway, _ async throws in
            let body = #"{"scopes":["messages:send"],"expires_at":"2026-03-01T12:00:00Z"}"#
            let answer = await gateway.admin(.post, "/admin/v1/tenants/demo/keys", body: body)
            try answer.expectProblem(422, "invalid_field")
        }
    }

    @Test("A rotated key works until the overlap ends, and its successor has the same permissions")
    func rotate() async throws {
        try await TestGateway.run { gateway, _ in
            let old = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["a"])
            let id = try #require(APIKey(old)?.id)
            let answer = await gateway.admin(.post, "\(Self.path)/\(id)/rotate", body: #"{"overlap_s":60}"#)
            #expect(answer.status == 201)
            #expect(answer.header("Cache-Control") == "no-store")
            let json = try answer.json
            let new = try #require(json["key"]?.text)
            #expect(json["id"]?.text != id)
            #expect(
                json.without("id", "key") == [
                    "name": "test", "scopes": ["messages:send"], "topic_prefixes": ["a"],
                    "created_at": "2026-03-01T12:00:00.000Z",
                ]
            )
            let message = #"{"token":"t"}"#
            #expect(await gateway.send(message, key: old).status == 200)
            #expect(await gateway.send(message, key: new).status == 200)
            gateway.clock.advance(by: .seconds(59))
            #expect(await gateway.send(message, key: old).status == 200)
            gateway.clock.advance(by: .seconds(1))
            #expect(await gateway.send(message, key: old).status == 401)
            #expect(await gateway.send(message, key: new).status == 200)

            let dead = await gateway.admin(.post, "\(Self.path)/\(id)/rotate", body: #"{"overlap_s":60}"#)
            try dead.expectProblem(409, "conflict")
        }
    }

    @Test("A key rotated without overlap stops at once, and a rotation never extends an earlier expiry")
    func rotateAtOnce() async throws {
        try await TestGateway.run { gateway, key in
            let id = try #require(APIKey(key)?.id)
            #expect(await gateway.admin(.post, "\(Self.path)/\(id)/rotate", body: #"{"overlap_s":0}"#).status == 201)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)

            let short = try await gateway.makeKey(
                scopes: [.sendMessages],
                expiresAt: gateway.clock.now().advanced(by: .seconds(10))
            )
            let shortID = try #require(APIKey(short)?.id)
            let path = "\(Self.path)/\(shortID)/rotate"
            #expect(await gateway.admin(.post, path, body: #"{"overlap_s":86400}"#).status == 201)
            gateway.clock.advance(by: .seconds(10))
            #expect(await gateway.send(#"{"token":"t"}"#, key: short).status == 401)
        }
    }

    @Test("A second revocation of a key succeeds and keeps the time of the first")
    func revoke() async throws {
        try await TestGateway.run { gateway, key in
            let id = try #require(APIKey(key)?.id)
            let first = await gateway.admin(.delete, "\(Self.path)/\(id)")
            #expect(first.status == 204)
            #expect(first.body.isEmpty)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)
            gateway.clock.advance(by: .seconds(60))
            #expect(await gateway.admin(.delete, "\(Self.path)/\(id)").status == 204)
            let listed = try await gateway.admin(.get, Self.path).json["keys"]?[0]
            #expect(listed?["revoked_at"] == "2026-03-01T12:00:00.000Z")
            #expect(try await gateway.auditRecords(of: "key.revoke").count == 2)
        }
    }

    @Test("Another tenant's key and an unknown key are not found")
    func foreignKey() async throws {
        try await TestGateway.run { gateway, _ in
            let other = try await gateway.makeKey(scopes: [.sendMessages], tenant: "other")
            let id = try #require(APIKey(other)?.id)
            for id in [id, "aaaaaaaaaa", "x"] {
                #expect(await gateway.admin(.delete, "\(Self.path)/\(id)").status == 404)
                let rotated = await gateway.admin(.post, "\(Self.path)/\(id)/rotate", body: #"{"overlap_s":0}"#)
                #expect(rotated.status == 404)
            }
            let sent = await gateway.data(.post, "/v1/tenants/other/messages", key: other, body: #"{"token":"t"}"#)
            #expect(sent.status == 200)
        }
    }
}
