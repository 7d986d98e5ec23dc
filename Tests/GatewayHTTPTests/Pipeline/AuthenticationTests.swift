import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct AuthenticationTests {
    private static let message = #"{"token":"device"}"#

    @Test("Every kind of invalid key gets the same 401")
    func refused() async throws {
        try await TestGateway.run { gateway, key in
            let expiring = try await gateway.makeKey(
                scopes: [.sendMessages],
                expiresAt: gateway.clock.now().advanced(by: .seconds(60))
            )
            let revoked = try await gateway.makeKey(scopes: [.sendMessages])
            let id = try #require(APIKey(revoked)?.id)
            #expect(await gateway.admin(.delete, "/admin/v1/tenants/demo/keys/\(id)").status == 204)
            #expect(await gateway.send(Self.message, key: expiring).status == 200)
            gateway.clock.advance(by: .seconds(60))

            let headers: [String?] = [
                nil, "", "Bearer", "Bearer ", "Basic \(key)", "key=\(key)", "Bearer=\(key)", key, "Bearer \(key) x",
                "Bearer \(key.dropLast())", "Bearer \(key.dropLast())\(key.last == "0" ? "1" : "0")",
                "Bearer \(key.uppercased())", "Bearer fgw_", "Bearer fgw___", "Bearer \(Self.stranger)",
                "Bearer \(expiring)", "Bearer \(revoked)", "Bearer \(TestGateway.adminToken)",
            ]
            var bodies: Set<String> = []
            for header in headers {
                let answer = await gateway.send(
                    Self.message,
                    key: nil,
                    headers: header.map { ["Authorization": $0] } ?? [:]
                )
                #expect(answer.status == 401, "\(header ?? "no header")")
                #expect(answer.header("WWW-Authenticate") == "Bearer")
                bodies.insert(answer.body)
            }
            #expect(bodies.count == 1)
            let problem = try JSON(parsing: bodies.first ?? "")
            #expect(
                problem.without("title", "detail") == [
                    "type": "/problems/unauthenticated", "status": 401, "code": "unauthenticated",
                    "retryable": false, "action": "fix_credentials",
                ]
            )
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("The scheme is accepted in any case and with extra spaces", arguments: ["Bearer ", "bearer ", "BEARER  "])
    func scheme(prefix: String) async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.send(Self.message, key: nil, headers: ["Authorization": prefix + key]).status == 200)
        }
    }

    @Test("Authentications are counted by result")
    func metrics() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(Self.message, key: key)
            _ = await gateway.send(Self.message, key: nil)
            _ = await gateway.send(Self.message, key: "nonsense")
            _ = await gateway.send(Self.message, key: Self.stranger)
            for result in ["accepted", "missing", "malformed", "unknown"] {
                let counter = try gateway.metrics.expectCounter(
                    "fcmgw_auth_total",
                    [("method", "api_key"), ("result", result)]
                )
                #expect(counter.totalValue == 1)
            }
        }
    }

    /// A well-formed key that was never issued.
    private static let stranger = APIKey.generate().secret.revealText()
}
