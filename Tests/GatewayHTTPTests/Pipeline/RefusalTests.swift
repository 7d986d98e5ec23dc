import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct RefusalTests {
    @Test(
        "An unknown path is not found, with or without a key",
        arguments: [
            "/healthz", "/v1", "/v1/tenants/demo", "/v1/tenants/demo/message", "/v1/tenants/demo/messages/explained",
            "/fcm/sends",
            "*", "/v1/tenants//messages", "/%", "/problems",
            "/v1/tenants/demo/messages/x/y/z", "/v1/tenants/demo/messages/", "//v1/tenants/demo/messages", "/.",
            "/admins",
            "/v1/tenants/demo/messages%2f",
        ]
    )
    func unknownRoute(path: String) async throws {
        try await TestGateway.run { gateway, key in
            for key in [key, nil] {
                for method in [HTTPRequest.Method.get, .post, .delete] {
                    let answer = await gateway.data(method, path, key: key)
                    #expect(answer.status == 404)
                    let problem = try answer.problem()
                    #expect(
                        problem.without("title") == [
                            "type": "/problems/not_found", "status": 404, "code": "not_found",
                            "detail": "There is no such route; GET / lists the routes", "retryable": false,
                            "action": "fix_request",
                        ]
                    )
                }
            }
        }
    }

    @Test("A failing store is answered with a retryable 503")
    func storeUnavailable() async throws {
        try await TestGateway.run { gateway, key async throws in
            gateway.directoryDatabase.refuse()
            let change = await gateway.admin(.put, "/admin/v1/tenants/new", body: #"{"display_name":"New"}"#)
            #expect(change.status == 503)
            #expect(change.header("Retry-After") == "5")
            #expect(try change.code() == "overloaded")
            #expect(try change.problem()["retryable"] == true)
            // Sends continue with the directory in memory.
            #expect(await gateway.send(#"{"token":"device"}"#, key: key).status == 200)
        }
    }

    @Test("Requests are measured by their route's template, never by their path")
    func metrics() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"device"}"#, key: key)
            _ = await gateway.data(.post, "/v1/tenants/secret-tenant/messages", key: key, body: "{}")
            _ = await gateway.data(HTTPRequest.Method("BREW") ?? .get, "/secret-path", key: key)
            let timers = gateway.metrics.timers(label: "fcmgw_http_request_duration_seconds")
            let labels = Set(timers.map { $0.dimensions.map { "\($0.0)=\($0.1)" }.joined(separator: " ") })
            #expect(labels.contains("route=/v1/tenants/{tenant}/messages method=POST status=200"))
            #expect(labels.contains("route=/v1/tenants/{tenant}/messages method=POST status=404"))
            #expect(labels.contains("route=none method=other status=404"))
            #expect(labels.allSatisfy { !$0.contains("secret") && !$0.contains("NotFound") })
            let active = try gateway.metrics.expectMeter("fcmgw_http_active_requests", [("listener", "data")])
            #expect(active.lastValue == 0)
            #expect(active.values.contains(1))
        }
    }
}
