import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

/// Keys of a tenant that requires client certificates, on every surface of the data listener.
struct ClientCertificateTests {
    private static let bound = Tenant.Draft(
        displayName: "Demo",
        upstream: .legacy,
        clientNames: ["orders.internal", "spiffe://example.org/orders"].compactMap { ClientName($0) }
    )

    @Test("A valid key without a matching client name gets the same answer as no key", arguments: Surface.all)
    func refused(surface: Surface) async throws {
        try await TestGateway.run { gateway, key in
            func ask(_ key: String?, _ names: [String]) async -> Answer {
                var surface = surface
                surface.headers = ["X-Request-ID": "the-same"]
                return await surface.ask(gateway, key: key, clientNames: names)
            }
            // The first request may create an object, so the second is the reference.
            _ = await ask(key, [])
            let free = await ask(key, [])
            #expect(free.status != 401)
            _ = try await gateway.administration.put(Self.bound, id: .sample("demo"), origin: TestGateway.origin)
            let nobody = await ask(nil, ["orders.internal"])
            #expect(nobody.status == 401)
            let calls = gateway.upstream.calls.count
            for names in [
                [], ["billing.internal"], ["ORDERS.INTERNAL"], ["orders.internal."], ["spiffe://example.org"],
            ] {
                let answer = await ask(key, names)
                #expect(answer.status == 401)
                #expect(answer.body == nobody.body)
                #expect(answer.headers == nobody.headers)
            }
            #expect(gateway.upstream.calls.count == calls)
            for names in [["orders.internal"], ["x", "spiffe://example.org/orders"]] {
                #expect(await ask(key, names).status == free.status)
            }
        }
    }

    @Test("A header can't replace a client certificate")
    func fieldsSayNothing() async throws {
        try await TestGateway.run { gateway, key in
            _ = try await gateway.administration.put(Self.bound, id: .sample("demo"), origin: TestGateway.origin)
            for name in ["X-SSL-Client-CN", "X-Forwarded-Client-Cert", "Client-Cert", "X-Client-Names"] {
                let answer = await gateway.send(#"{"token":"a"}"#, key: key, headers: [name: "orders.internal"])
                #expect(answer.status == 401)
            }
        }
    }

    @Test("Other tenants are unaffected, and the refusal is counted and logged without the key")
    func others() async throws {
        try await TestGateway.run { gateway, key in
            _ = try await gateway.administration.put(Self.bound, id: .sample("demo"), origin: TestGateway.origin)
            let other = try await gateway.makeKey(scopes: [.sendMessages], tenant: "other")
            let answer = await gateway.data(.post, "/v1/tenants/other/messages", key: other, body: #"{"token":"a"}"#)
            #expect(answer.status == 200)
            #expect(await gateway.send(#"{"token":"a"}"#, key: key).status == 401)
            let counter = try gateway.metrics.expectCounter(
                "fcmgw_auth_total",
                [("method", "api_key"), ("result", "certificate")]
            )
            #expect(counter.totalValue == 1)
            let id = try #require(APIKey(key)?.id)
            #expect(gateway.logText.contains("client certificate"))
            #expect(gateway.logText.contains("key_id=\(id)"))
            #expect(!gateway.logText.contains(key))
        }
    }
}
