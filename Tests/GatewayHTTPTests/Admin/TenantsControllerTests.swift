import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct TenantsControllerTests {
    private static let base = "/admin/v1/tenants"

    @Test("A tenant is made, shown, changed and removed")
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
                "tenant": "acme-1", "display_name": "Acme Ltd", "upstream": "legacy", "disabled": true,
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

    @Test("A removed tenant's keys are refused at once, and come back with no tenant of its name")
    func removedTenantsKeys() async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.admin(.delete, "\(Self.base)/demo").status == 204)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)
            _ = await gateway.admin(.put, "\(Self.base)/demo", body: #"{"display_name":"Demo"}"#)
            #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 401)
            let json = try await gateway.admin(.get, "\(Self.base)/demo/keys").json
            #expect(json == ["keys": []])
        }
    }

    @Test("The list goes by name, in pages")
    func paging() async throws {
        try await TestGateway.run { gateway, _ in
            for name in ["zulu", "alpha", "mike"] { _ = try await gateway.makeTenant(name) }
            var names: [[String]] = []
            var query = "?limit=2"
            while names.count < 9 {
                let answer = await gateway.admin(.get, Self.base + query)
                #expect(answer.status == 200)
                let page = try answer.json
                names.append(page["tenants"]?.elements.compactMap { $0["tenant"]?.text } ?? [])
                guard let cursor = page["next_cursor"]?.text else { break }
                query = "?limit=2&cursor=\(cursor)"
            }
            #expect(names == [["alpha", "demo"], ["mike", "other"], ["zulu"]])
            let all = try await gateway.admin(.get, Self.base).json
            #expect(all.keys == ["tenants"])
            #expect(all["tenants"]?.elements.count == 5)
            let whole = try await gateway.admin(.get, "\(Self.base)?limit=5").json
            #expect(whole["next_cursor"] == nil)
        }
    }

    @Test(
        "A list's bad parameter is refused",
        arguments: ["limit=0", "limit=501", "limit=x", "cursor=%2A", "name=demo", "limit=1&limit=1"]
    )
    func badParameter(query: String) async throws {
        try await TestGateway.run { gateway, _ in
            #expect(await gateway.admin(.get, "\(Self.base)?\(query)").status == 422)
        }
    }

    @Test("Without a name for people, the tenant's id stands for it")
    func nameByDefault() async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.put, "\(Self.base)/acme", body: "{}")
            let json = try answer.json
            #expect(answer.status == 201)
            #expect(json["display_name"]?.text == "acme")
        }
    }

    @Test(
        "A name that no tenant can have is not found",
        arguments: ["Acme", "-acme", "a_b", "a.b", "a%20b", String(repeating: "a", count: 64), "%61cme"]
    )
    func badName(name: String) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.put, "\(Self.base)/\(name)", body: #"{"display_name":"x"}"#)
            #expect(answer.status == 404)
            let code = try answer.code()
            #expect(code == "not_found")
            #expect(await gateway.admin(.get, "\(Self.base)/\(name)").status == 404)
        }
    }

    @Test(
        "A bad body is refused with the places of its faults",
        arguments: [
            (#"{"display_name":""}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":5}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":null}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":"a","upstream":"v2"}"#, ["/upstream: invalid_field"]),
            (#"{"display_name":"a","upstream":null}"#, ["/upstream: invalid_field"]),
            (#"{"display_name":"a","project_id":7}"#, ["/project_id: invalid_field"]),
            (#"{"display_name":"a","project_id":""}"#, ["/project_id: invalid_field"]),
            (#"{"display_name":"a","sender_id":123}"#, ["/sender_id: invalid_field"]),
            (#"{"display_name":"a","sender_id":"12a"}"#, ["/sender_id: invalid_field"]),
            (#"{"display_name":"a","disabled":"yes"}"#, ["/disabled: invalid_field"]),
            (#"{"display_name":"a","disabled":null}"#, ["/disabled: invalid_field"]),
            (#"{"display_name":"a","id":"b"}"#, ["/id: unknown_field"]),
            (#"{"nope":1,"disabled":0}"#, ["/nope: unknown_field", "/disabled: invalid_field"]),
        ]
    )
    func badBody(body: String, faults: [String]) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.put, "\(Self.base)/acme", body: body)
            #expect(answer.status == 422)
            let found = try answer.faults()
            #expect(found == faults)
            #expect(await gateway.admin(.get, "\(Self.base)/acme").status == 404)
        }
    }

    @Test("The next send goes by the protocol that the tenant was set to")
    func upstream() async throws {
        try await TestGateway.run { gateway, key in
            for upstream in [UpstreamKind.v1, .legacy] {
                let body = #"{"display_name":"Demo","upstream":"\#(upstream.rawValue)","project_id":"p"}"#
                let answer = await gateway.admin(.put, "\(Self.base)/demo", body: body)
                #expect(answer.status == 200)
                let stored = try answer.json["upstream"]?.text
                #expect(stored == upstream.rawValue)
                #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 200)
                #expect(gateway.upstream.calls.last?.profile.tenant.upstream == upstream)
            }
        }
    }

    @Test("Bodies that are no JSON are refused", arguments: [("{", 400), ("[]", 400), (#"{"a":1,"a":2}"#, 400)])
    func malformed(body: String, status: Int) async throws {
        try await TestGateway.run { gateway, _ in
            #expect(await gateway.admin(.put, "\(Self.base)/acme", body: body).status == status)
            let text = await gateway.admin(
                .put,
                "\(Self.base)/acme",
                body: #"{"display_name":"a"}"#,
                headers: ["Content-Type": "text/plain"]
            )
            #expect(text.status == 415)
        }
    }

    @Test("A change is recorded before and after it is made")
    func audited() async throws {
        try await TestGateway.run { gateway, _ in
            let headers = ["X-Request-ID": "change-1"]
            _ = await gateway.admin(.put, "\(Self.base)/acme", body: #"{"display_name":"a"}"#, headers: headers)
            _ = await gateway.admin(.delete, "\(Self.base)/acme", headers: headers)
            let records = gateway.auditStore.current.records.map(\.record).filter { $0.requestID == "change-1" }
            #expect(records.map(\.action) == ["tenant.put", "tenant.put", "tenant.delete", "tenant.delete"])
            #expect(records.map(\.outcome) == [.intent, .done, .intent, .done])
            #expect(records.map(\.method) == ["PUT", "PUT", "DELETE", "DELETE"])
            #expect(records.allSatisfy { $0.tenant == "acme" && $0.principal == "admin" })
        }
    }

    @Test("A tenant's client names are shown as they hold, and are gone when left out")
    func clientNames() async throws {
        try await TestGateway.run { gateway, _ in
            let path = "\(Self.base)/bound"
            let body = #"{"client_names":["Orders.Internal","spiffe://example.org/Orders"]}"#
            let names: JSON = ["orders.internal", "spiffe://example.org/Orders"]
            let made = try await gateway.admin(.put, path, body: body).json
            #expect(made["client_names"] == names)
            let shown = try await gateway.admin(.get, path).json
            #expect(shown["client_names"] == names)
            let list = await gateway.admin(.get, Self.base)
            #expect(list.body.contains(#""client_names":["orders.internal","spiffe://example.org/Orders"]"#))
            for body in [#"{"display_name":"Bound"}"#, #"{"client_names":[]}"#] {
                #expect(await gateway.admin(.put, path, body: body).status == 200)
                #expect(!(await gateway.admin(.get, path).body.contains("client_names")))
            }
        }
    }

    @Test(
        "Client names that are none are refused, each by its pointer",
        arguments: [
            (#""orders""#, "/client_names"), ("[1]", "/client_names/0"), (#"[""]"#, "/client_names/0"),
            (#"["a","*.b"]"#, "/client_names/1"), (#"["a","A"]"#, "/client_names/1"),
            (#"["a","b:"]"#, "/client_names/1"),
            ("null", "/client_names"),
            (#"[\#((0...16).map { #""n\#($0)""# }.joined(separator: ","))]"#, "/client_names"),
        ]
    )
    func badClientNames(value: String, pointer: String) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.put, "\(Self.base)/bound", body: #"{"client_names":\#(value)}"#)
            #expect(answer.status == 422)
            #expect(answer.body.contains(#""pointer":"\#(pointer)""#), "\(answer.body)")
            #expect(await gateway.admin(.get, "\(Self.base)/bound").status == 404)
        }
    }
}
