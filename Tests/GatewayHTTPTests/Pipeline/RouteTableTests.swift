import GatewayTestKit
import InMemoryLogging
import Logging
import Testing

@testable import GatewayHTTP

struct RouteTableTests {
    /// A path, the template that it fits, and the parameters in it.
    struct Case: Sendable, CustomTestStringConvertible {
        var path: String
        var template: String?
        var parameters: [String: String] = [:]

        var testDescription: String { self.path }
    }

    @Test(
        "A path has one route by its segments, in the spelling that its surface takes",
        arguments: [
            Case(
                path: "/v1/tenants/demo/messages?a=/b",
                template: "/v1/tenants/{tenant}/messages",
                parameters: ["tenant": "demo"]
            ),
            Case(path: "/v1/tenants/demo/messages/", template: nil),
            Case(path: "//v1/tenants/demo/messages", template: nil),
            Case(path: "/v1/tenants//messages", template: nil),
            Case(path: "/fcm/send?", template: "/fcm/send"),
            Case(path: "/fcm/send/", template: nil),
            Case(
                path: "//v1///tenants/demo/audit//?x",
                template: "/v1/tenants/{tenant}/audit",
                parameters: ["tenant": "demo"]
            ),
            Case(
                path: "/v1/tenants/demo/topics/100%25/subscriptions/remove",
                template: "/v1/tenants/{tenant}/topics/{topic}/subscriptions/remove",
                parameters: ["tenant": "demo", "topic": "100%25"]
            ),
            Case(path: "/v1/tenants/demo/%61udit", template: nil),
            Case(path: "/iid/v1%3AbatchAdd", template: "/iid/v1:batchAdd"),
            Case(path: "/iid/info/", template: "/iid/info/{token}", parameters: ["token": ""]),
            Case(
                path: "/v1/projects/p/registrations/a%3Ab/topicSubscriptions/t",
                template: "/v1/projects/{project}/registrations/{token}/topicSubscriptions/{topic}",
                parameters: ["project": "p", "token": "a%3Ab", "topic": "t"]
            ),
            Case(path: "*", template: nil), Case(path: "", template: nil), Case(path: "/", template: nil),
        ]
    )
    func routes(expected: Case) async throws {
        try await TestGateway.run { gateway, _ in
            let found = gateway.dataListener.routes.row(at: Array(expected.path.utf8))
            #expect(found?.0.route.template == expected.template)
            for (name, value) in expected.parameters { #expect(found?.1.text(name) == value) }
            #expect(found?.1["another"] == nil)
        }
    }

    @Test("What is wrong with a request is told in one order on every surface", arguments: Surface.all)
    func order(surface: Surface) async throws {
        try await TestGateway.run { gateway, key in
            let powerless = try await gateway.makeKey(scopes: [])
            func code(_ key: String, _ headers: [String: String], _ body: String) async -> String? {
                var surface = surface
                surface.headers = headers
                _ = await surface.ask(gateway, key: key, body: body)
                let line = gateway.logs.entries.last { $0.message == "Request answered" }
                return line?.metadata["code"].map { "\($0)" }
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
