import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct RouteTableTests {
    /// A path, the template that it matches, and its parameters.
    struct Case: Sendable, CustomTestStringConvertible {
        var path: String
        var template: String?
        var parameters: [String: String]

        var testDescription: String { self.path }

        init(_ path: String, _ template: String?, _ parameters: [String: String] = [:]) {
            self.path = path
            self.template = template
            self.parameters = parameters
        }
    }

    private static let removal = "/v1/tenants/{tenant}/topics/{topic}/subscriptions/remove"
    private static let topic = "/v1/projects/{project}/registrations/{token}/topicSubscriptions/{topic}"

    private static let cases: [Case] = [
        Case("/v1/tenants/demo/messages?a=/b", "/v1/tenants/{tenant}/messages", ["tenant": "demo"]),
        Case("/v1/tenants/demo/messages/", nil),
        Case("//v1/tenants/demo/messages", nil),
        Case("/v1/tenants//messages", nil),
        Case("/fcm/send?", "/fcm/send"),
        Case("/fcm/send/", nil),
        Case("//v1///tenants/demo/audit//?x", "/v1/tenants/{tenant}/audit", ["tenant": "demo"]),
        Case(
            "/v1/tenants/demo/topics/100%25/subscriptions/remove",
            Self.removal,
            ["tenant": "demo", "topic": "100%25"]
        ),
        Case("/v1/tenants/demo/%61udit", nil),
        Case("/iid/v1%3AbatchAdd", "/iid/v1:batchAdd"),
        Case("/iid/info/", "/iid/info/{token}", ["token": ""]),
        Case(
            "/v1/projects/p/registrations/a%3Ab/topicSubscriptions/t",
            Self.topic,
            ["project": "p", "token": "a%3Ab", "topic": "t"]
        ),
        Case("*", nil), Case("", "/"), Case("/?a", "/"),
        Case("/problems/forbidden", "/problems/{code}", ["code": "forbidden"]),
    ]

    @Test("A path's segments determine its route, in the spelling that its surface accepts", arguments: Self.cases)
    func routes(expected: Case) async throws {
        try await TestGateway.run { gateway, _ in
            let found = gateway.dataListener.routes.row(at: Array(expected.path.utf8))
            #expect(found?.0.route.template == expected.template)
            for (name, value) in expected.parameters { #expect(found?.1.text(name) == value) }
            #expect(found?.1["another"] == nil)
        }
    }

    @Test("Every surface reports the faults of a request in the same order", arguments: Surface.all)
    func order(surface: Surface) async throws {
        try await TestGateway.run { gateway, key in
            let powerless = try await gateway.makeKey(scopes: [])
            func code(_ key: String, _ headers: [String: String], _ body: String) async -> String? {
                var surface = surface
                surface.headers = headers
                _ = await surface.ask(gateway, key: key, body: body)
                return gateway.lastLoggedCode
            }
            let wrong = ["X-Request-Timeout-Ms": "soon", "Idempotency-Key": String(repeating: "k", count: 256)]
            #expect(await code("nonsense", wrong, "{") == "unauthenticated")
            #expect(await code(powerless, wrong, "{") == "forbidden")
            #expect(await code(key, wrong, "{") == "bad_request")
            #expect(await code(key, ["Idempotency-Key": String(repeating: "k", count: 256)], "{") == "bad_request")
            #expect(gateway.upstream.calls.isEmpty && gateway.topics.changes.isEmpty)
        }
    }
}
