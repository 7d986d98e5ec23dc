import EventLoopHTTP
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct ListenerTests {
    @Test(
        "Only sends, explanations and subscription lists may have large bodies",
        arguments: [
            ("/v1/tenants/demo/messages", 1_048_576), ("/v1/tenants/demo/messages?x=/y", 1_048_576),
            ("/fcm/send", 1_048_576), ("/fcm/send?x=/y", 1_048_576), ("/fcm/sendx", 65_536), ("/fcm", 65_536),
            ("/v1/projects/demo/messages:send", 1_048_576), ("/v1/projects/demo/messages:send?alt=json", 1_048_576),
            ("/v1/projects//messages:send", 65_536), ("/v1/projects/a/b/messages:send", 65_536),
            ("/v1/projects/demo/messages:sends", 65_536),
            ("/v1/tenants/demo/audit", 65_536), ("/v1/tenants/demo/audit?x=/messages", 65_536), ("/", 65_536),
            ("/v1/tenants/demo/messages/explain", 1_048_576), ("/v1/tenants/demo/messagesx", 65_536),
            ("/v1/tenants/demo/messages/explain?form=legacy", 1_048_576),
            ("/v1/tenants/demo/messages/explains", 65_536),
            ("/v1/tenants/demo/topics/news/subscriptions", 1_048_576),
            ("/v1/tenants/demo/topics/news/subscriptions?x=/y", 1_048_576),
            ("/v1/tenants/demo/topics/news/subscriptions/remove", 1_048_576), ("/iid/v1:batchAdd", 1_048_576),
            ("/iid/v1:batchRemove", 1_048_576), ("/v1/tenants/demo/audit?x=/subscriptions", 65_536),
            ("/iid/info/x", 65_536), ("/v1/projects/p/registrations/t/topicSubscriptions", 65_536),
            ("/subscriptions", 65_536), ("/v1/tenants//messages", 65_536), ("/v1/tenants/demo/x/messages", 65_536),
        ]
    )
    func bodyLimit(path: String, limit: Int) async throws {
        let request = HTTPRequest(method: .post, scheme: "http", authority: "gateway.test", path: path)
        try await TestGateway.run { gateway, _ in
            #expect(gateway.dataListener.bodyLimit(of: HTTPRequestHead(request)) == limit)
        }
    }

    @Test("No route has a smaller limit than all others")
    func leastBodyLimit() async throws {
        try await TestGateway.run { gateway, _ in
            let limits = gateway.dataListener.routes.rows.map(\.route.bodyLimit)
            #expect(limits.min() == Listener.leastBodyLimit)
        }
    }

    @Test("A request without a path has the small limit")
    func noPath() async throws {
        let request = HTTPRequest(method: .connect, scheme: nil, authority: "gateway.test", path: nil)
        try await TestGateway.run { gateway, _ in
            #expect(gateway.dataListener.bodyLimit(of: HTTPRequestHead(request)) == 65_536)
        }
    }
}
