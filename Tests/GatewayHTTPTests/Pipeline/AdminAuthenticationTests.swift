import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct AdminAuthenticationTests {
    @Test("Every admin route requires an admin token, and each wrong guess is recorded")
    func refused() async throws {
        try await TestGateway.run { gateway, key in
            let recorded = try await gateway.auditRecords().map(\.action)
            let routes = gateway.adminListener.routes.rows.flatMap(\.endpoints).map { $0.endpoint.route }
                .filter { $0.credential == .bearer }
            #expect(routes.count > 15)
            for route in routes {
                let (method, path) = (route.method, EveryRouteTests.path(route.template))
                for token in [
                    nil, "", "wrong", key, TestGateway.adminToken + "x", String(TestGateway.adminToken.dropLast()),
                ] {
                    let answer = await gateway.admin(method, path, token: token, body: "{}")
                    #expect(answer.status == 401, "\(method) \(path)")
                    #expect(answer.header("WWW-Authenticate") == "Bearer")
                    let problem = try answer.problem()
                    #expect(
                        problem.without("title") == [
                            "type": "/problems/unauthenticated", "status": 401, "code": "unauthenticated",
                            "detail": "Send an admin token as Authorization: Bearer <token>", "retryable": false,
                            "action": "fix_credentials",
                        ]
                    )
                }
            }
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords().dropFirst(recorded.count).dropLast()
            // Three of the six are guesses; an API key and a missing or empty token are not.
            #expect(records.map(\.action) == Array(repeating: "admin.authenticate", count: 3 * routes.count))
            for record in records {
                #expect((record.outcome, record.code) == (.rejected, "unauthenticated"))
                #expect((record.principal, record.object, record.tenant) == ("unknown", "192.0.2.1", nil))
            }
            #expect(!records.contains { "\($0)".contains("wrong") || "\($0)".contains(TestGateway.adminToken) })
        }
    }

    @Test("A key in the legacy form and an admin token without Bearer are refused")
    func schemes() async throws {
        try await TestGateway.run { gateway, key in
            for header in ["key=\(key)", "Basic \(TestGateway.adminToken)", TestGateway.adminToken] {
                let answer = await gateway.admin(
                    .get,
                    "/admin/v1/tenants",
                    token: nil,
                    headers: ["Authorization": header]
                )
                #expect(answer.status == 401)
            }
            #expect(await gateway.admin(.get, "/admin/v1/tenants").status == 200)
        }
    }

    @Test("Only a wrong token is answered after a pause, not a correct or missing token or an API key")
    func pause() async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.admin(.get, "/admin/v1/tenants").status == 200)
            #expect(await gateway.admin(.get, "/admin/v1/tenants", token: nil).status == 401)
            #expect(await gateway.admin(.get, "/admin/v1/tenants", token: key).status == 401)
            #expect(await gateway.admin(.get, "/livez", token: "wrong").status == 200)
            #expect(gateway.pauses.current == 0)
            for token in ["wrong", key + "x", TestGateway.adminToken + "x"] {
                #expect(await gateway.admin(.get, "/admin/v1/tenants", token: token).status == 401)
            }
            #expect(gateway.pauses.current == 3)
        }
    }

    @Test("Accepted and refused authentications are counted")
    func metrics() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.admin(.get, "/admin/v1/tenants")
            _ = await gateway.admin(.get, "/admin/v1/tenants", token: key)
            for result in ["accepted", "refused"] {
                let counter = try gateway.metrics.expectCounter(
                    "fcmgw_auth_total",
                    [("method", "admin_token"), ("result", result)]
                )
                #expect(counter.totalValue == 1)
            }
        }
    }
}
