import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct TenantRoutesTests {
    private static let base = "/admin/v1/tenants"

    @Test("A tenant is created, shown, changed and removed")
    func lifeCycle() async throws {
        try await TestGateway.run { gateway, _ in
            let path = "\(Self.base)/acme-1"
            #expect(await gateway.admin(.get, path).status == 404)
            let made = await gateway.admin(
                .put,
                path,
                body: #"{"display_name":"Acme","upstream":"legacy","project_id":"acme-p","sender_id":"123"}"#
            )
            #expect(made.status == 201)
            #expect(made.header("Content-Type") == "application/json")
            var expected: JSON = [
                "tenant": "acme-1", "display_name": "Acme", "upstream": "legacy", "project_id": "acme-p",
                "sender_id": "123", "disabled": false, "created_at": "2026-03-01T12:00:00.000Z",
                "updated_at": "2026-03-01T12:00:00.000Z",
            ]
            let json = try made.json
            #expect(json == expected)
            let shown = await gateway.admin(.get, path)
            #expect(shown.status == 200)
            #expect(try shown.json == expected)

            gateway.clock.advance(by: .seconds(90))
            let changed = await gateway.admin(.put, path, body: #"{"display_name":"Acme Ltd","disabled":true}"#)
            #expect(changed.status == 200)
            expected = [
                "tenant": "acme-1", "display_name": "Acme Ltd", "upstream": "v1", "disabled": true,
                "created_at": "2026-03-01T12:00:00.000Z", "updated_at": "2026-03-01T12:01:30.000Z",
            ]
            #expect(try changed.json == expected)

            let removed = await gateway.admin(.delete, path)
            #expect(removed.status == 204)
            #expect(removed.body.isEmpty)
            #expect(await gateway.admin(.get, path).status == 404)
            #expect(await gateway.admin(.delete, path).status == 404)
        }
    }

    @Test("A merge patch changes the fields that it names, null resets a field, and other fields stay")
    func patch() async throws {
        try await TestGateway.run { gateway, _ in
            let path = "\(Self.base)/acme"
            #expect(await gateway.admin(.patch, path, body: "{}").status == 404)
            let settings =
                #"{"display_name":"Acme","upstream":"legacy","project_id":"p","sender_id":"7","client_names":["a.b"]}"#
            _ = await gateway.admin(.put, path, body: settings)
            for (body, changed) in [
                (#"{"disabled":true}"#, { (tenant: inout JSON) in tenant["disabled"] = true }),
                (
                    #"{"display_name":null,"sender_id":null}"#,
                    {
                        $0["display_name"] = "acme"
                        $0["sender_id"] = nil
                    }
                ),
                (#"{"client_names":[]}"#, { $0["client_names"] = nil }),
                (
                    #"{"upstream":null,"disabled":null}"#,
                    {
                        $0["upstream"] = "v1"
                        $0["disabled"] = false
                    }
                ),
                ("{}", { _ in }),
            ] as [(String, (inout JSON) -> Void)] {
                var expected = try await gateway.admin(.get, path).json
                changed(&expected)
                let headers = ["Content-Type": "application/merge-patch+json"]
                let answer = await gateway.admin(.patch, path, body: body, headers: headers)
                #expect(answer.status == 200, "\(body)")
                #expect(try answer.json == expected, "\(body)")
            }
            try await gateway.admin(.patch, path, body: #"{"sender_id":"x"}"#).expectProblem(422, "invalid_field")
            try await gateway.admin(.patch, path, body: #"{"project_id":"a b"}"#).expectProblem(422, "invalid_field")
            try await gateway.admin(.patch, path, body: #"{"name":"x"}"#).expectProblem(422, "unknown_field")
            // Null has a meaning only in a patch.
            try await gateway.admin(.put, path, body: #"{"sender_id":null}"#).expectProblem(422, "invalid_field")
        }
    }

    @Test("If-Match refuses a change that is based on an outdated version", arguments: ["", "/limits"])
    func precondition(suffix: String) async throws {
        try await TestGateway.run { gateway, _ in
            let path = "\(Self.base)/demo\(suffix)"
            let tag = try #require(await gateway.admin(.get, path).header("ETag"))
            let bodies =
                suffix.isEmpty
                ? [#"{"display_name":"A"}"#, #"{"display_name":"B"}"#]
                : [#"{"topic":[{"rate":1,"per_s":1,"burst":1}]}"#, #"{"topic":[{"rate":2,"per_s":1,"burst":2}]}"#]
            let first = await gateway.admin(.patch, path, body: bodies[0], headers: ["If-Match": tag])
            #expect(first.status == 200)
            for method in [HTTPRequest.Method.put, .patch] + (suffix.isEmpty ? [.delete] : []) {
                let body = method == .delete ? "" : bodies[1]
                let late = await gateway.admin(method, path, body: body, headers: ["If-Match": tag])
                try late.expectProblem(412, "precondition_failed")
            }
            let present = try #require(first.header("ETag"))
            let any = "\"0-0\", \(present)"
            #expect(await gateway.admin(.put, path, body: bodies[1], headers: ["If-Match": any]).status == 200)
            #expect(await gateway.admin(.put, path, body: bodies[0], headers: ["If-Match": "*"]).status == 200)
            let absent = "\(Self.base)/nobody"
            let made = await gateway.admin(.put, absent, body: "{}", headers: ["If-Match": "*"])
            try made.expectProblem(412, "precondition_failed")
        }
    }

    @Test("A removed tenant's keys are refused at once, and stay refused if its name is used again")
    func removedTenantsKeys() async throws {
        try await TestGateway.run { gateway, key async throws in
            #expect(await gateway.admin(.delete, "\(Self.base)/demo").status == 204)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)
            _ = await gateway.admin(.put, "\(Self.base)/demo", body: #"{"display_name":"Demo"}"#)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)
            #expect(try await gateway.admin(.get, "\(Self.base)/demo/keys").json == ["keys": []])
        }
    }

    @Test(
        "Admin routes answer 404 for an unknown tenant",
        arguments: [
            (HTTPRequest.Method.get, "", ""), (.delete, "", ""), (.get, "/limits", ""), (.put, "/limits", "{}"),
            (.get, "/credentials/legacy", ""), (.get, "/credentials/v1", ""), (.post, "/credentials/check", ""),
            (.put, "/credentials/legacy", #"{"server_key":"a"}"#), (.delete, "/credentials/v1", ""),
            (.patch, "", "{}"), (.patch, "/limits", "{}"), (.get, "/keys", ""),
            (.post, "/keys", #"{"name":"a","scopes":["audit:read"]}"#), (.delete, "/keys/x", ""),
            (.post, "/keys/x/rotate", #"{"overlap_s":0}"#),
        ]
    )
    func unknownTenant(method: HTTPRequest.Method, suffix: String, body: String) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(method, "\(Self.base)/nobody\(suffix)", body: body)
            try answer.expectProblem(404, "not_found")
        }
    }

    @Test(
        "An invalid tenant name is not found",
        arguments: ["Acme", "-acme", "a_b", "a.b", "a%20b", String(repeating: "a", count: 64), "%61cme"]
    )
    func badName(name: String) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.put, "\(Self.base)/\(name)", body: #"{"display_name":"x"}"#)
            try answer.expectProblem(404, "not_found")
            #expect(await gateway.admin(.get, "\(Self.base)/\(name)").status == 404)
        }
    }

    @Test("DNS client names are shown in lower case, and a request without client names removes them")
    func clientNames() async throws {
        try await TestGateway.run { gateway, _ async throws in
            let path = "\(Self.base)/bound"
            let body = #"{"client_names":["Orders.Internal","spiffe://example.org/Orders"]}"#
            let names: JSON = ["orders.internal", "spiffe://example.org/Orders"]
            #expect(try await gateway.admin(.put, path, body: body).json["client_names"] == names)
            #expect(try await gateway.admin(.get, path).json["client_names"] == names)
            let list = await gateway.admin(.get, Self.base)
            #expect(list.body.contains(#""client_names":["orders.internal","spiffe://example.org/Orders"]"#))
            for body in [#"{"display_name":"Bound"}"#, #"{"client_names":[]}"#] {
                #expect(await gateway.admin(.put, path, body: body).status == 200)
                #expect(!(await gateway.admin(.get, path).body.contains("client_names")))
            }
        }
    }
}
