import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct AdminTokenRoutesTests {
    private static let path = "/admin/v1/admin-tokens"

    private static func create(
        _ gateway: TestGateway,
        _ role: OperatorRole,
        name: String = "alice"
    ) async throws -> String {
        let answer = await gateway.admin(.post, Self.path, body: #"{"name":"\#(name)","role":"\#(role.rawValue)"}"#)
        #expect(answer.status == 201)
        return try #require(try answer.json["token"]?.text)
    }

    @Test(
        "Each role is admitted to the routes of its rights, and refused by every other",
        arguments: OperatorRole.allCases
    )
    func roles(role: OperatorRole) async throws {
        try await TestGateway.run { gateway, _ in
            let token = try await Self.create(gateway, role)
            let browser = Browser(gateway)
            try await browser.logIn(token)
            var count = 0
            for row in gateway.adminListener.routes.rows {
                for (method, endpoint) in row.endpoints where endpoint.route.credential != nil {
                    count += 1
                    let name = AdminRoles.name(of: endpoint.route)
                    let least = try #require(AdminRoles.table[name], "\(name) has no role")
                    // No tenant, batch or token has this name, so nothing is changed by the routes that admit.
                    let path = endpoint.route.template.replacing(try Regex(#"\{[a-z]+\}"#), with: "none")
                    // The log-out is the last route of all.
                    if path == "/console/log-out" { continue }
                    let answer =
                        endpoint.route.credential == .session
                        ? await browser.ask(method, path) : await gateway.admin(method, path, token: token)
                    #expect((answer.status == 403) == (role < least), "\(name): \(answer.status)")
                    #expect(answer.status != 401 && answer.status < 500, "\(name): \(answer.status)")
                }
            }
            #expect(count == AdminRoles.table.count)
            #expect(await browser.ask(.post, "/console/log-out").status == 303)
            #expect(await browser.ask(.get, "/console").status == 303)
        }
    }

    @Test("The description names the role of every route")
    func described() throws {
        let roles = try OpenAPIDocument("admin.yaml").scopes
            .compactMap { route, roles in
                roles?.first.map { ("\(route.method) \(route.template)", $0) }
            }
        // The console is for people.
        let expected = AdminRoles.table.filter { !$0.key.contains("/console") }.mapValues(\.rawValue)
        #expect(Dictionary(uniqueKeysWithValues: roles) == expected)
    }

    @Test("A token is shown once, listed without its secret, and refused once it is revoked")
    func life() async throws {
        try await TestGateway.run { gateway, _ in
            let token = try await Self.create(gateway, .auditor, name: "alice@example.com")
            let list = try await gateway.admin(.get, Self.path).json
            let listed = try #require(list["admin_tokens"]?[0])
            #expect(listed.without("created_at") == ["name": "alice@example.com", "role": "auditor"])
            #expect(await gateway.admin(.get, "/admin/v1/audit", token: token).status == 200)
            let repeated = await gateway.admin(.post, Self.path, body: #"{"name":"alice@example.com","role":"admin"}"#)
            #expect(repeated.status == 409)
            #expect(await gateway.admin(.delete, Self.path + "/alice%40example.com").status == 204)
            #expect(await gateway.admin(.delete, Self.path + "/alice%40example.com").status == 404)
            #expect(await gateway.admin(.get, "/admin/v1/audit", token: token).status == 401)
        }
    }

    @Test(
        "A malformed request names its field",
        arguments: [
            (#"{"role":"viewer"}"#, "/name"), (#"{"name":"a"}"#, "/role"),
            (#"{"name":"a b","role":"viewer"}"#, "/name"), (#"{"name":"..","role":"viewer"}"#, "/name"),
            (#"{"name":"a","role":"root"}"#, "/role"), (#"{"name":"a","role":"viewer","scope":1}"#, "/scope"),
            (#"{"name":"a","role":"viewer","expires_at":"2020-01-01T00:00:00Z"}"#, "/expires_at"),
        ]
    )
    func malformed(body: String, pointer: String) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.post, Self.path, body: body)
            #expect(answer.status == 422)
            let problem = try answer.json
            #expect(problem["errors"]?[0]?["pointer"]?.text == pointer)
        }
    }

    @Test("The audit names the operator of a change, and of a request that the role does not allow")
    func recorded() async throws {
        try await TestGateway.run { gateway, _ in
            let token = try await Self.create(gateway, .operator)
            let limits = #"{"tenant":[{"rate":10,"per_s":1,"burst":10}]}"#
            let answer = await gateway.admin(.put, "/admin/v1/tenants/demo/limits", token: token, body: limits)
            #expect(answer.status == 200)
            #expect(await gateway.admin(.delete, "/admin/v1/tenants/demo", token: token).status == 403)
            try await gateway.settleAudit()
            let changes = try await gateway.auditRecords(of: "limits.put").map(\.principal)
            #expect(Set(changes) == ["admin:alice"])
            let refused = try #require(try await gateway.auditRecords(of: "admin.authenticate").first)
            #expect(refused.principal == "admin:alice" && refused.object == "DELETE /admin/v1/tenants/{tenant}")
        }
    }
}
